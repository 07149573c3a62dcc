/**
 * `npm run test:fuzz`: the fuzz tests at their full length, against a stack of their own; `npm run test:steps`: flows broken off
 * at every step. `FUZZ_SEED` makes a run again.
 */
process.env['FUZZ_LONG'] = '1'
process.argv.splice(2, Infinity, ...(process.argv.length > 2 ? process.argv.slice(2) : ['test/fuzz/']))
await import('../run.ts')
