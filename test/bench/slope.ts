/** A value at a time. */
export interface Sample {
  at: number
  value: number
}

/** The straight line through samples by least squares: how much the value grows in one unit of time. NaN of fewer than two times. */
export function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number) => samples.reduce((sum, one) => sum + of(one), 0) / samples.length
  const [at, value] = [mean((one) => one.at), mean((one) => one.value)]
  const product = mean((one) => (one.at - at) * (one.value - value))
  return product / mean((one) => (one.at - at) ** 2)
}
