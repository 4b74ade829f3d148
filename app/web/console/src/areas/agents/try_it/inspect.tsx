// What the model saw of a turn.
import { t } from "../../../texts";
import { Dialog } from "../../../ui/dialog";

export function Inspect(
  { onClose }: { conversationId: string; messageId: string; onClose: () => void },
) {
  return (
    <Dialog title={t().agents.tryIt.inspect} isDrawer onClose={onClose}>
      {null}
    </Dialog>
  );
}
