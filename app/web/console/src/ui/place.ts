// Places a popover below what it belongs to, or above it where there is no room.
export function placeBelow(anchor: HTMLElement, popover: HTMLElement): void {
  const { bottom, top, left, right } = anchor.getBoundingClientRect();
  const { offsetHeight: height, offsetWidth: width } = popover;
  const below = bottom + height + 8 < innerHeight;
  popover.style.top = `${below ? bottom + 4 : Math.max(4, top - height - 4)}px`;
  popover.style.left = `${Math.max(4, left + width > innerWidth - 4 ? right - width : left)}px`;
}
