import { cpus, totalmem } from 'node:os'

/** What it was measured on. */
export const readMachine = () => ({
  cores: cpus().length,
  model: cpus()[0]?.model,
  memoryGib: Math.round(totalmem() / 2 ** 30),
  node: process.version,
})
