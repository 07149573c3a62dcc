import { parseOnce } from '@app/deploy/command-line.ts'
import { type GoalName, goalNames, usualGoals } from './goals/goals.ts'

export interface Options {
  goals: GoalName[]
  rounds: number
  /** Length of one measurement. */
  seconds: number
  /** Proves that everything runs: one round, one second, small numbers of everything, no warm-up. */
  quick: boolean
  /** Which job queues the fan-out is measured against. */
  peers: Peer[]
  /** Rows of the large side, where lists and backlogs are measured. */
  rows: number
  /** Take CPU profiles of the services, and print what costs most in each; statements too. */
  profile: boolean
  /** Print what each SQL statement costs. */
  statements: boolean
  /** How long the soak lasts. */
  minutes: number
  /** The page whose figures are written anew from what `capacity` measured. */
  capacity: string | undefined
}

export const peers = ['bullmq', 'pg-boss', 'graphile-worker'] as const
export type Peer = (typeof peers)[number]

export const usage = `npm run bench -- [--only ${goalNames.slice(0, 3).join(',')},…] [--rounds 5] [--seconds 4] [--peers all] [--rows 1000000] [--profile] [--statements] [--quick] [--capacity docs/capacity.md]
npm run bench -- --only soak [--minutes 30]
Goals: ${goalNames.join(', ')}`

/** Throws a sentence about what is wrong. */
export function readOptions(args: string[]): Options {
  const { values } = parse(args)
  const quick = values.quick
  const goals = readGoals(values.only)
  refuseIdle(goals, values)
  return {
    goals,
    rounds: readCount('--rounds', values.rounds ?? (quick ? '1' : '5'), { least: 1, most: 3600 }),
    seconds: readCount('--seconds', values.seconds ?? (quick ? '1' : '4'), { least: 1, most: 3600 }),
    rows: readCount('--rows', values.rows ?? (quick ? '10000' : '1000000'), { least: 10_000, most: 100_000_000 }),
    quick,
    peers: values.peers === 'all' ? [...peers] : readPeers(values.peers ?? 'bullmq'),
    profile: values.profile,
    statements: values.statements || values.profile,
    minutes: readMinutes(values.minutes ?? (quick ? '0.1' : '30')),
    capacity: values.capacity,
  }
}

const parse = (args: string[]) =>
  parseOnce(
    {
      args,
      options: {
        only: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        peers: { type: 'string' },
        rows: { type: 'string' },
        profile: { type: 'boolean', default: false },
        statements: { type: 'boolean', default: false },
        minutes: { type: 'string' },
        capacity: { type: 'string' },
        quick: { type: 'boolean', default: false },
      },
    },
    `\n${usage}`,
  )

/** The goal that an option is about; without it the option would change nothing, or be missed only at the end. */
const goalOf = { peers: 'fan-out', minutes: 'soak', capacity: 'capacity' } as const

function refuseIdle(goals: GoalName[], values: Partial<Record<keyof typeof goalOf, string>>) {
  for (const [option, goal] of Object.entries(goalOf) as [keyof typeof goalOf, GoalName][]) {
    if (values[option] !== undefined && !goals.includes(goal))
      throw new Error(`--${option} is about the goal ${goal}, which is not measured in this run.\n${usage}`)
  }
}

function refuseDoubles(option: string, names: string[]) {
  const twice = names.find((name, n) => names.indexOf(name) !== n)
  if (twice !== undefined) throw new Error(`${option} names ${twice} more than once.\n${usage}`)
}

function readGoals(text: string | undefined): GoalName[] {
  if (text === undefined) return usualGoals
  const asked = text.split(',')
  const unknown = asked.find((name) => !goalNames.some((known) => known === name))
  if (unknown !== undefined) throw new Error(`--only: there is no goal "${unknown}".\n${usage}`)
  refuseDoubles('--only', asked)
  return goalNames.filter((name) => asked.includes(name))
}

function readPeers(text: string): Peer[] {
  const asked = text.split(',')
  refuseDoubles('--peers', asked)
  return asked.map((name) => {
    const peer = peers.find((known) => known === name)
    if (!peer) throw new Error(`--peers: "${name}" is none of ${peers.join(', ')}, all.\n${usage}`)
    return peer
  })
}

function readMinutes(text: string) {
  const minutes = Number(text)
  if (!(minutes >= 0.1 && minutes <= 10_000)) throw new Error(`--minutes must be a number from 0.1 to 10000.\n${usage}`)
  return minutes
}

function readCount(option: string, text: string, { least, most }: { least: number; most: number }) {
  const count = Number(text)
  if (!Number.isInteger(count) || count < least || count > most)
    throw new Error(`${option} must be a whole number from ${least} to ${most}.\n${usage}`)
  return count
}
