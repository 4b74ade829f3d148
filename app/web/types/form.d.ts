// Types of app/web/static/form: what the server sends, and what its modules share.
import type { ApiProblem as Problem, FormApi as Api } from "../static/form/api.js";
import type { FieldView as View } from "../static/form/field.js";
import type { FormView as Page } from "../static/form/form.js";
import type { PROBLEMS, TEXTS } from "../static/form/texts.js";
import type { readAddress } from "../static/form/address.js";

declare global {
  // The form, as app/domain/forms/submissions/public_schemas.py describes it.
  interface Form {
    name: string;
    slug: string;
    description: string;
    version: number;
    fields: Field[];
    branding: Branding;
    settings: { submit_button_text: string; redirect_url: string | null };
  }

  interface Branding {
    primary_color: string | null;
    background_color: string | null;
    logo_url: string | null;
  }

  interface Field {
    id: string;
    type: string;
    label: string;
    placeholder: string;
    required: boolean;
    validation: Validation;
    options: FieldOption[];
    has_data_source: boolean;
    help_text: string;
    conditional: Conditional | null;
  }

  interface Validation {
    min?: number;
    max?: number;
    step?: number;
    min_length?: number;
    max_length?: number;
    pattern?: string;
    min_selections?: number;
    max_selections?: number;
    min_date?: string;
    max_date?: string;
    allowed_types?: string[];
    max_size_mb?: number;
  }

  // A page of a form: the page break that starts it, and its other fields.
  interface FormPage {
    id: string;
    start: Field | null;
    fields: Field[];
  }

  // A text, or its variants by plural categories.
  type FixedText = string | ({ other: string } & { [category in Intl.LDMLPluralRule]?: string });

  type TextValues = Record<string, string | number>;

  // The tables of a language.
  type FormTexts = Record<keyof typeof TEXTS, FixedText>;
  type FormProblems = Record<keyof typeof PROBLEMS, { field: FixedText; list: FixedText }>;

  interface Wording {
    language: string;
    plurals: Intl.PluralRules;
    texts: FormTexts;
    problems: FormProblems;
    // Texts of the page around.
    own: Record<string, string>;
  }

  // What is wrong with an answer.
  interface AnswerProblem {
    // For the field itself.
    sentence: string;
    // For a list: what stands before and after the label of the field.
    splitAtLabel(): [string, string];
  }

  interface FieldOption {
    value: string;
    label: string;
  }

  // A single condition, or a group of them.
  interface Conditional {
    field?: string;
    operator?: Operator;
    value?: unknown;
    all?: Conditional[];
    any?: Conditional[];
  }

  type Operator =
    | "equals"
    | "not_equals"
    | "contains"
    | "gt"
    | "lt"
    | "is_empty"
    | "is_not_empty"
    | "in";

  type Answer = string | number | boolean | string[];

  // By the ids of fields.
  type Answers = Record<string, Answer>;

  // Returns the stored form of a value that is not empty, or throws WrongValue.
  type Check = (field: Field, value: unknown) => Answer;

  type CheckResult = { value?: Answer; problem?: AnswerProblem };

  // A row of controls/registry.js: all that the page knows about a type of field.
  interface FieldType {
    // What the visitor answers with.
    buildControl?: BuildControl;
    // What is shown and not answered.
    buildStatic?: (field: Field) => HTMLElement;
    // What follows it is another page.
    startsPage?: boolean;
    check?: Check;
    // What the control reads before anybody uses it, if that is not "no answer".
    initialValue?: Answer;
    // Converts a value of the page's address, by default to a string; null where nobody else may
    // answer for the visitor.
    fromAddress?: ((value: Answer) => Answer) | null;
    // The page around answers it; nothing is shown.
    isHidden?: boolean;
    // What the chat offers besides typing: the control, or a button for each of the options.
    inChat?: "control" | "options";
    // Returns the words that the chat has a button for: what it sends, and what it shows.
    listWords?: (field: Field) => [content: string, shown: string][];
    // The keyboard of a phone for typing the answer in the chat.
    inputMode?: string;
  }

  type BuildControl = (field: Field, context: ControlContext) => Control;

  interface ControlContext {
    api: FormApi;
    loadOptions(field: Field): Promise<FieldOption[]>;
    changed(): void;
    showProblem(problem: AnswerProblem | null): void;
  }

  type ShowOptions = (options: FieldOption[]) => void;

  type FieldInput = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

  interface Control {
    element: HTMLElement | null;
    // The inputs that a label and messages belong to.
    inputs: FieldInput[];
    // Of the group around several inputs.
    role?: "group" | "radiogroup";
    hint?: string;
    // Its label stands beside it.
    isBox?: boolean;
    // `undefined` is no answer.
    read(): Answer | undefined;
    write(value: Answer | undefined): void;
    focus(): void;
    // What keeps the form from being sent, other than a wrong answer.
    findProblem?(): AnswerProblem | null;
    // Returns what the chat sends and what it shows, if that is not the answer.
    toMessage?(): [content: string, shown: string];
  }

  // What FieldView needs: `changed` gets the view.
  interface FieldContext extends Omit<ControlContext, "changed" | "showProblem"> {
    changed(view: FieldView): void;
  }

  type ReplyContext = Omit<ControlContext, "changed" | "showProblem">;

  // Sends an answer; `shown` is what the visitor sees of it.
  type Say = (content: string, shown: string) => void;

  type FormApi = Api;
  type ApiProblem = Problem;
  type FieldView = View;
  type FormView = Page;
  type PageAddress = ReturnType<typeof readAddress>;

  interface PageContext {
    form: Form;
    api: FormApi;
    address: PageAddress;
    place: HTMLElement;
  }

  interface ConversationView {
    id: string;
    status: "active" | "completed";
    fields_completed: number;
    fields_total: number;
  }

  interface FormMessage {
    role: "user" | "assistant";
    content: string;
    field_id?: string | null;
  }

  interface ConversationState {
    view: ConversationView;
    messages: FormMessage[];
  }

  // The data of the events of a reply.
  interface ReplyData {
    delta: string;
    fields_completed: number;
    fields_total: number;
    field_id: string | null;
    form_completed: boolean;
    submission_id: string | null;
  }

  type HeaderValues = Record<string, string>;

  interface ErrorBody {
    code?: string;
    message?: string;
    details?: { errors?: { field: string; message: string }[] } | null;
  }

  interface FieldProblem {
    name: string;
    problem: AnswerProblem;
    view?: FieldView;
  }

  // A message of the chat, which can grow and be removed.
  interface LogEntry {
    show(text: string): void;
    setTyping(isTyping: boolean): void;
    remove(): void;
  }

  interface FormOutcome {
    message: string;
    submissionId: string | null;
    redirectUrl: string | null;
    isEmbedded: boolean;
  }

  interface RequestOptions extends Omit<RequestInit, "body"> {
    body?: object | string;
  }

  type Point = [x: number, y: number];

  // The status is 0 for a lost connection and null after a cancellation.
  interface UploadAnswer {
    status: number | null;
    body: {
      data?: { file_id: string; filename: string; size_bytes: number };
      error?: ErrorBody;
    } | null;
  }

  interface SavedDraft {
    token: string;
    url: string;
    expires_at: string;
  }

  // What the page in a frame says to the page around it.
  interface FrameMessage {
    type: string;
    height?: number;
    top?: number;
    name?: unknown;
    url?: unknown;
    submissionId?: unknown;
  }
}
