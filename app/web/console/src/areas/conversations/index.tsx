import { useSubPath } from "../../ui/state";
import { ConversationList } from "./list";

export default function Conversations() {
  const [id] = useSubPath();
  return id ? null : <ConversationList />;
}
