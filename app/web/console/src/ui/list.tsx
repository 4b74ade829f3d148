// A list of records with its looks: loading, failing, empty, nothing found, full.
import type { ComponentChildren } from "preact";

import type { List } from "../api/queries";
import { t } from "../texts";
import { Button } from "./button";
import { Empty, Failure, Skeleton } from "./states";
import { type Column, Table } from "./table";

interface ListTableProps<Row> {
  label: string;
  list: List<Row>;
  columns: Column<Row>[];
  keyOf: (row: Row) => string;
  linkOf?: (row: Row) => string;
  onOpen?: (row: Row) => void;
  isStrong?: (row: Row) => boolean;
  actionsOf?: (row: Row) => ComponentChildren;
  // What stands here while there is nothing yet.
  empty: ComponentChildren;
  // Removes the filters. Without it, the list is not filtered.
  onClear?: (() => void) | undefined;
}

export function ListTable<Row>({ list, empty, onClear, ...table }: ListTableProps<Row>) {
  if (!list.rows) {
    return list.error ? <Failure error={list.error} onRetry={list.refetch} /> : <Skeleton />;
  }
  if (!list.rows.length && onClear) {
    return (
      <Empty
        title={t().common.nothingFound}
        action={<Button onClick={onClear}>{t().common.clearFilters}</Button>}
      />
    );
  }
  if (!list.rows.length) return <>{empty}</>;
  return (
    <Table
      {...table}
      rows={list.rows}
      hasMore={list.hasMore}
      isLoadingMore={list.isLoadingMore}
      onMore={list.more}
    />
  );
}
