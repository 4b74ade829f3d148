import { useSubPath } from "../../ui/state";
import { ConversationScreen } from "./conversation";
import { ConversationList } from "./list";

export default function Conversations() {
  const [id] = useSubPath();
  return id ? <ConversationScreen key={id} id={id} /> : <ConversationList />;
}
