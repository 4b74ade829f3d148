// A signature: drawn with a pointer, or typed. The answer is a PNG image as a data URL.
import { button, el, required } from "../../shared/dom.js";
import { getText } from "../texts.js";

const [WIDTH, HEIGHT] = [900, 300];
const MAX_CHARACTERS = 200_000;
const INK = "#1a1a2e";
const PAPER = "#ffffff";
const LINE_WIDTH = 5;
const TYPED_FONT = '96px "Snell Roundhand", "Segoe Script", "Brush Script MT", cursive';

/** @type {BuildControl} */
export function signature(field, context) {
  const pad = new Pad(field, context);
  return {
    element: pad.element,
    inputs: [pad.name],
    role: "group",
    read: () => pad.read(),
    write: (value) => pad.write(value ? String(value) : undefined),
    focus: () => pad.name.focus(),
  };
}

class Pad {
  /** @type {string | undefined} */
  #value;
  /** @type {Point | null} */
  #last = null;

  /** @param {Field} field @param {ControlContext} context */
  constructor(field, context) {
    this.context = context;
    this.canvas = el("canvas", {
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": getText("signHere"),
    });
    this.pen = required(this.canvas.getContext("2d"));
    this.name = el("input", {
      type: "text",
      id: `field-${field.id}`,
      autocomplete: "name",
      dir: "auto",
      maxlength: 100,
      "aria-label": getText("typeToSign"),
      placeholder: getText("orTypeToSign"),
      on: { input: () => this.#type() },
    });
    this.clearButton = button(getText("clear"), () => this.#clear(), { class: "quiet" });
    this.element = el(
      "div",
      { class: "input signature" },
      el("div", { class: "pad" }, this.canvas),
      el("div", { class: "row" }, this.name, this.clearButton),
    );
    this.#listen();
    this.#wipe();
  }

  read() {
    return this.#value;
  }

  /** @type {(value: string | undefined) => void} */
  write(value) {
    this.#wipe();
    this.name.value = "";
    this.#value = value || undefined;
    // Of a file, only the id is known.
    if (!value?.startsWith("data:")) return;
    const image = new Image();
    image.onload = () => this.pen.drawImage(image, 0, 0, WIDTH, HEIGHT);
    image.src = value;
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#draw(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => this.#end());
    }
  }

  /** @type {(event: PointerEvent) => Point} */
  #locate({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return [
      ((clientX - box.left) * WIDTH) / box.width,
      ((clientY - box.top) * HEIGHT) / box.height,
    ];
  }

  /** @type {(event: PointerEvent) => void} */
  #begin(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    if (this.name.value) this.#clear();
    this.canvas.setPointerCapture(event.pointerId);
    const point = this.#locate(event);
    this.#drawLine(point, [point]);
  }

  /** @type {(event: PointerEvent) => void} */
  #draw(event) {
    if (!this.#last) return;
    const events = event.getCoalescedEvents?.() ?? [];
    const points = (events.length ? events : [event]).map((item) => this.#locate(item));
    this.#drawLine(this.#last, points);
  }

  /** @type {(start: Point, points: Point[]) => void} */
  #drawLine(start, points) {
    this.pen.beginPath();
    this.pen.moveTo(...start);
    for (const point of points) this.pen.lineTo(...point);
    this.pen.stroke();
    this.#last = points[points.length - 1];
  }

  #end() {
    if (!this.#last) return;
    this.#last = null;
    this.#store();
  }

  #type() {
    this.#wipe();
    const text = this.name.value.trim();
    if (text) {
      this.pen.font = TYPED_FONT;
      this.pen.fillStyle = INK;
      this.pen.textAlign = "center";
      this.pen.fillText(text, WIDTH / 2, HEIGHT / 2 + 30, WIDTH - 60);
      this.#store();
    } else {
      this.#value = undefined;
      this.context.changed();
    }
  }

  #store() {
    this.#value = encode(this.canvas);
    this.context.changed();
  }

  #clear() {
    this.write(undefined);
    this.context.changed();
  }

  #wipe() {
    this.pen.fillStyle = PAPER;
    this.pen.fillRect(0, 0, WIDTH, HEIGHT);
    Object.assign(this.pen, {
      strokeStyle: INK,
      lineWidth: LINE_WIDTH,
      lineCap: "round",
      lineJoin: "round",
    });
  }
}

// A drawing with very many lines is made smaller until the server takes it.
/** @type {(canvas: HTMLCanvasElement) => string} */
function encode(canvas) {
  let url = canvas.toDataURL("image/png");
  for (let scale = 0.5; url.length > MAX_CHARACTERS && scale > 0.1; scale /= 2) {
    const small = el("canvas", { width: WIDTH * scale, height: HEIGHT * scale });
    required(small.getContext("2d")).drawImage(canvas, 0, 0, small.width, small.height);
    url = small.toDataURL("image/png");
  }
  return url;
}
