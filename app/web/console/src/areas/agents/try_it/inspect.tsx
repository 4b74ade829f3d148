// What the model saw of a turn.
import { TurnContext } from "../../../ui/turn_context";

export function Inspect(props: { conversationId: string; messageId: string; onClose: () => void }) {
  return <TurnContext {...props} />;
}
