import { useSubPath } from "../../ui/state";
import { AgentScreen } from "./agent";
import { AgentList } from "./list";

export default function Agents() {
  const [id] = useSubPath();
  return id ? <AgentScreen key={id} id={id} /> : <AgentList />;
}
