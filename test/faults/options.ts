import { randomInt } from 'node:crypto'
import { parseOnce } from '@app/deploy/command-line.ts'

const parts = ['nemesis', 'stories'] as const
export type Part = (typeof parts)[number]

export interface Options {
  parts: Part[]
  /** Of the nemesis. */
  seed: string
  seconds: string
}

const usage = 'Usage: npm run test:faults -- [--only nemesis|stories] [--seed 7] [--seconds 600]'
const mostSeed = 999_999_999
const mostSeconds = 86_400

/** What the command line and the environment ask for. Throws a sentence about what is wrong. */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options {
  const options = { only: { type: 'string' }, seed: { type: 'string' }, seconds: { type: 'string' } } as const
  const { only, ...given } = parseOnce({ args, options }, ` ${usage}`).values
  const wanted = parts.filter((part) => only === undefined || part === only)
  if (wanted.length === 0) throw new Error(`--only: "${only}" is neither nemesis nor stories. ${usage}`)
  const [idle] = wanted.includes('nemesis') ? [] : Object.keys(given)
  if (idle !== undefined) throw new Error(`--${idle} is about the nemesis, which is not in this run. ${usage}`)
  const { seed = env['FAULTS_SEED'] || String(randomInt(1_000_000)), seconds = env['FAULTS_SECONDS'] || '600' } = given
  return { parts: wanted, seed: whole('seed', seed, 0, mostSeed), seconds: whole('seconds', seconds, 1, mostSeconds) }
}

function whole(name: string, text: string, least: number, most: number) {
  if (/^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most) return text
  throw new Error(`--${name} must be a whole number from ${least} to ${most}, and is "${text}". ${usage}`)
}
