// Types of app/web/static/shared.

declare global {
  type Child = Node | string | null | undefined | false;

  // Attributes without a value are left out.
  interface Attributes {
    [name: string]: string | number | boolean | URL | null | undefined | Listeners;
    on?: Listeners;
  }

  type Listeners = {
    [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void;
  };

  type ServerEvent<Data> = { event: string; data: Data };

  type Color = number[];

  // A block of Markdown.
  interface Block {
    type: BlockType;
    lines: string[];
    source: string;
  }

  type BlockType = "code" | "heading" | "rule" | "quote" | "list" | "table" | "paragraph";

  // What a part of a line becomes, and where that part ends.
  type Span = { nodes: Child[]; end: number };

  type Icon = keyof typeof import("../static/shared/dom.js").PATHS;
}

export {};
