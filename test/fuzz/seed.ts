/**
 * Where the chances of a run come from. `FUZZ_SEED` makes a run again; without it each has another, but for the short run of
 * CI, which judges a change and not a chance. `FUZZ_LONG` makes it long: `npm run test:fuzz` sets it, `npm test` does not.
 */
const isLong = process.env['FUZZ_LONG'] !== undefined
const seedOfCi = process.env['CI'] && !isLong ? 1 : undefined

export const seed = Number(process.env['FUZZ_SEED'] ?? seedOfCi ?? Math.floor(Math.random() * 2 ** 31))

console.log(`FUZZ_SEED=${seed}`)

/** How many of something a run does. */
export const amount = (short: number, long: number): number => (isLong ? long : short)
