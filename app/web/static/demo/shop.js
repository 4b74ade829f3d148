// Marks today's opening hours and says whether the shop is open now.
import { required } from "../shared/dom.js";

/** @type {(now: Date) => void} */
function showHours(now) {
  const time = now.getHours() + now.getMinutes() / 60;
  const label = required(document.getElementById("open-now"));
  /** @type {NodeListOf<HTMLElement>} */
  const cells = document.querySelectorAll("#hours td");
  for (const cell of cells) {
    const { days = "", from, to } = cell.dataset;
    if (!days.includes(String(now.getDay()))) continue;
    const isOpen = Number(from) <= time && time < Number(to);
    cell.parentElement?.classList.add("today");
    label.textContent = isOpen ? `Open now, until ${to}:00` : "Closed now";
    label.className = isOpen ? "open" : "closed";
    label.hidden = false;
  }
}

showHours(new Date());
