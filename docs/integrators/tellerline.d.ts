// Types of tellerline.js, as a module or as the global name Tellerline. What it does: embedding.md; a view's members:
// openapi.yaml.

export as namespace Tellerline;

/** A visitor's place in one queue. Nothing is asked of the server before `join` or `resume`. */
export function line(options: Options): Line;

export interface Options {
  /** The name of the queue. */
  queue: string;
  /** Where Tellerline is: "https://wait.shop.example". Absent: under this page's own origin. */
  server?: string;
  /** An invite that the site's back end signed; goes with the join. */
  invite?: string;
  /** A ticket that the page was given: by a back end with an API key, or kept by the app around the web view. */
  ticket?: string;
  /** Where the ticket is kept if the cookie does not reach the server. Default: localStorage; null: only in this page. */
  storage?: Storage | null;
}

/** Keeps the ticket. */
export interface Storage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A later release may have others: show them as "please wait". */
export type Status =
  'pending' | 'waiting' | 'active' | 'completed' | 'left' | 'expired' | 'removed' | 'moved' | 'passthrough' |
  (string & {});

/** The state of the place and of its queue. Members that do not apply are absent. Times are RFC 3339. */
export interface View {
  queue: string;
  status: Status;
  visitor?: string;
  ticket?: string;
  /** A short code of the visitor, for the support. It comes with `ticket`, and at the end. */
  reference?: string;
  position?: number;
  ahead?: number;
  eta_seconds?: number;
  eta_low?: number;
  eta_high?: number;
  eta_reason?: string;
  end_reason?: string;
  called?: true;
  admitted_last_minute?: number;
  waiting?: number;
  active?: number;
  capacity?: number;
  expires_at?: string;
  claimed?: true;
  pass?: string;
  target_url?: string;
  opens_at?: string;
  order?: 'draw';
  draw_id?: string;
  as_of?: string;
  paused?: true;
  mode?: string;
  phase?: string;
  recovering?: true;
  notice?: string;
  poll_after_ms?: number;
}

/** A refusal (RFC 9457). `type` is "" where the answer was none, or not Tellerline's. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  instance?: string;
  /** Seconds; 0: the server did not say. */
  retry_after: number;
  /** Of a queue with `challenge: external`. */
  provider?: 'turnstile' | 'hcaptcha' | 'recaptcha';
  site_key?: string;
}

export interface Trouble {
  /** offline: this device has no network; server: no answer; store: numbers of `as_of`, the place is kept. */
  kind: 'offline' | 'server' | 'store';
  /** When the last view came, in milliseconds of this device's clock; 0: never. */
  heard: number;
}

export interface Events {
  /** Each view, in order. */
  view: View;
  /** Once per admission, also where no place is needed: it is the visitor's turn. */
  admitted: View;
  /** The place has ended, or the session; or the place is on another device (`moved`). */
  ended: View;
  /** What the operator says; "": no longer. */
  notice: string;
  /** The server cannot be reached. The place is kept, and this script tries again. */
  trouble: Trouble;
  /** The trouble is over. */
  live: undefined;
  /** The line is full. The script joins when there is room. */
  full: undefined;
  /** A proof of work is asked for, and being done. */
  solving: Problem;
  /** Show the widget of `provider` with `site_key`, and call join({token}). */
  challenge: Problem;
  /** The join was refused, or the place is no longer known. The script has stopped. */
  refused: Problem;
}

export interface Proof {
  token?: string;
  solution?: string;
  invite?: string;
}

export type Done = (problem: Problem | null, view: View | null) => void;

export interface Line {
  on<Name extends keyof Events>(name: Name, handler: (value: Events[Name]) => void): Line;
  /** Takes a place, or returns to the one this browser has, and follows it. */
  join(proof?: Proof): void;
  /** Follows the place this browser has; `refused` with the status 401 if there is none. Asks nothing about a known view. */
  resume(view?: View): void;
  /** Claims the session, so that it lasts its whole time, and gets its pass. */
  claim(done?: Done): void;
  /** Makes a sliding session last longer. The same call as `claim`. */
  renew(done?: Done): void;
  /** The visitor is done; the next one is admitted. */
  complete(done?: Done): void;
  /** Gives the place up. */
  leave(done?: Done): void;
  /** Stops following. The place is kept as long as `waiting_ttl` says. */
  stop(): void;
  /** Whether this tab listens for all tabs that have its place. */
  leads(): boolean;
  /** The newest view. */
  view(): View | null;
  /** The ticket as far as this page knows it; "" if only the browser does. */
  ticket(): string;
  /** The server's clock in milliseconds, for countdowns to expires_at and opens_at. */
  now(): number;
}
