// Keeps a failure of one screen from taking the others with it.
import { Component, type ComponentChildren } from "preact";

import { t } from "../texts";
import { Button } from "../ui/button";
import { Empty } from "../ui/states";

interface Props {
  // The address of the screen: another one may be well.
  path: string;
  children: ComponentChildren;
}

export class Guard extends Component<Props, { error: unknown }> {
  override state = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidCatch(error: unknown) {
    reportError(error);
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error && before.path !== this.props.path) this.setState({ error: null });
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <Empty
        title={t().errors.crashed}
        action={<Button onClick={() => location.reload()}>{t().errors.reload}</Button>}
      >
        {t().errors.crashedHint}
      </Empty>
    );
  }
}
