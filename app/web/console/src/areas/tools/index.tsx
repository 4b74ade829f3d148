import { may } from "../../api/session";
import { useSubPath } from "../../ui/state";
import { ImportTool } from "./import";
import { ToolList } from "./list";
import { NewTool } from "./new_tool";
import { ToolScreen } from "./tool";
import { type ToolType, TYPES } from "./types";

export default function Tools() {
  const [id, type] = useSubPath();
  if (id === "new" && type && Object.hasOwn(TYPES, type) && may("tools:write")) {
    return <NewTool key={type} type={type as ToolType} />;
  }
  if (id === "import" && may("tools:write")) return <ImportTool />;
  return id && id !== "new" ? <ToolScreen key={id} id={id} /> : <ToolList />;
}
