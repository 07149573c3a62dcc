/** Now, in epoch milliseconds with their fractions: whole ones would make steps of what takes few. */
export const epochMs = (): number => performance.timeOrigin + performance.now()
