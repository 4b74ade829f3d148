import { useSubPath } from "../../ui/state";
import { CredentialScreen } from "./credential";
import { CredentialList } from "./list";

export default function Credentials() {
  const [id] = useSubPath();
  return id ? <CredentialScreen key={id} id={id} /> : <CredentialList />;
}
