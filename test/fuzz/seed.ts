/**
 * Where the chances of a run come from. `FUZZ_SEED` makes a run again; without it each has another. `FUZZ_LONG` makes it
 * long: `npm run test:fuzz` sets it, `npm test` does not.
 */
export const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

const isLong = process.env['FUZZ_LONG'] !== undefined

console.log(`FUZZ_SEED=${seed}`)

/** How many of something a run does. */
export const amount = (short: number, long: number): number => (isLong ? long : short)
