/** A second of one minute, in ISO 8601: what happens at a later one came later. */
export const at = (second: number): string => new Date(Date.UTC(2026, 2, 1, 12, 0, second)).toISOString()
