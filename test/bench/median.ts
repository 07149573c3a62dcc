/** The middle one; the mean of the two in the middle when their count is even. NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  const [below = NaN, above = below] = sorted.length % 2 === 1 ? [sorted[half]] : sorted.slice(half - 1, half + 1)
  return (below + above) / 2
}

/** The value that the share `of` (0 to 1) of all values does not exceed: the nearest rank. NaN of nothing. */
export function quantile(values: readonly number[], of: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(of * sorted.length) - 1)] ?? NaN
}
