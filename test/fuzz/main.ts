/**
 * `npm run test:fuzz`: the fuzz tests at their full length, against a stack of their own, and the services' changes at random;
 * `npm run test:steps`: flows broken off at every step. `FUZZ_SEED` makes a run again.
 */
process.env['FUZZ_LONG'] = '1'
const asked = process.argv.slice(2)
process.argv.splice(2, Infinity, ...(asked.length > 0 ? asked : ['test/fuzz/', 'at-random.test']))
await import('../run.ts')
