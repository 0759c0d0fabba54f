// Types of the responses of the portal and the file server.

/** A selected file or folder; `path`: its location. */
interface Item {
  path: string;
  name: string;
  folder: boolean;
  size: number;
  kind?: string;
  mode?: string;
}

/** An entry of a folder, of the file server. */
interface Entry {
  path: string;
  name: string;
  is_folder: boolean;
}

/** An operation of the file server. */
interface Operation {
  id: string;
  kind: "copy" | "move" | "delete" | "mode" | "unpack" | "fetch";
  state: "running" | "done" | "failed" | "cancelled" | "interrupted";
  items: string[];
  item_count?: number;
  to?: string;
  files: number;
  files_total: number | null;
  bytes: number;
  bytes_total: number | null;
  current: string;
  waiting: boolean;
  detail: string;
  problem_count: number;
  problems: { name: string; detail: string }[];
}

/** An upload that was not finished, of the file server. */
interface Unfinished {
  id: string;
  path: string;
  name: string;
  length: number | null;
  offset: number;
  is_partial: boolean;
  expires: number;
}

/** The number and size of the files below a folder. */
interface Usage {
  complete: boolean;
  files: number;
  folders: number;
  bytes: number;
}

/** A share of a storage folder. */
interface Share {
  kind: "user" | "group";
  name: string;
  access: "read" | "write";
  state: string;
}

/** A button of a line of the panel: its word, icon and action. */
type Action = [word: string, icon: string, act: () => unknown];

/** A line of the panel of running work; `share`: from 0 to 1, null if unknown. */
interface Line {
  title: string;
  state: string;
  share?: number | null;
  icon?: string;
  detail?: string;
  actions?: Action[];
  operation?: boolean;
  problems?: string[];
  problemWords?: string;
}

/** A file that was chosen; `path`: its name, below a folder that was chosen or dropped. */
interface Chosen {
  file: File;
  path?: string;
  handle?: FileSystemFileHandle;
}

type UploadState = "waiting" | "running" | "retrying" | "paused" | "asking" | "done" | "failed" | "cancelled";

/** The resolution of a conflict with an existing name. */
type OnConflict = "replace" | "rename" | "skip";

/** An upload of this page; `rate` in bytes a second, `remaining` in seconds, `marks`: [time, bytes sent]. */
interface UploadItem {
  id: number;
  name: string;
  target: string;
  file: File;
  handle?: FileSystemFileHandle;
  size: number;
  sent: number;
  rate: number;
  remaining: number | null;
  state: UploadState;
  problem: string;
  marks: [number, number][];
  attempt: number;
  how: OnConflict | "refuse";
  batch: { how: OnConflict | null };
  url: string | null;
  heard: number;
  timer: number;
  upload: import("tus-js-client").Upload | null;
}

/** A part of a notebook, as its file has it. */
interface Cell {
  cell_type: string;
  source: unknown;
  execution_count?: number | null;
  outputs?: Output[];
}

interface Output {
  output_type: string;
  name?: string;
  text?: unknown;
  traceback?: string[];
  ename?: string;
  evalue?: string;
  data?: Record<string, unknown>;
}
