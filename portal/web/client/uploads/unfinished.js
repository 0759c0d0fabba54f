// Uploads of an earlier visit that are not complete: which of them are left, and in how many lines they are shown.
const MOST_LINES = 3;

/**
 * Those that no upload of this page continues.
 * @template {Pick<Unfinished, "path" | "length">} T
 * @param {T[]} uploads @param {Pick<UploadItem, "target" | "size">[]} items
 */
export const left = (uploads, items) => uploads.filter(({ path, length }) => !items.some((item) => item.target === path && item.size === length));

/**
 * A line for each of a few, or the sum of many.
 * @template {Pick<Unfinished, "offset" | "length">} T
 * @param {T[]} uploads @returns {{ single: T[], sum: { count: number, offset: number, length: number } | null }}
 */
export function linesOf(uploads) {
  if (uploads.length <= MOST_LINES) return { single: uploads, sum: null };
  const sum = { count: uploads.length, offset: 0, length: 0 };
  for (const { offset, length } of uploads) Object.assign(sum, { offset: sum.offset + offset, length: sum.length + (length ?? offset) });
  return { single: [], sum };
}
