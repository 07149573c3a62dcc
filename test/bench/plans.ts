// Plans of statements as they ran, from the log of a server with auto_explain (`log_format` json).

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
}

/** A step of a plan. */
interface Step {
  kind: string
  /** Null: it reads no table itself. */
  table: string | null
  /** That it read, thrown away or not, all times together. */
  rows: number
}

export interface Plan {
  role: string
  statement: string
  steps: Step[]
  /** As the server told it. */
  whole: unknown
}

const entry = /^\S+ \S+ \S+ \[\d+\] (\S+) LOG: {2}duration: [\d.]+ ms {2}plan:\n((?:\t.*(?:\n|$))+)/gm

/** The plans in a part of the log. */
export function plansIn(log: string): Plan[] {
  return Array.from(log.matchAll(entry), ([, role = '', json = '']) => {
    const { 'Query Text': statement, Plan: plan } = JSON.parse(json) as { 'Query Text': string; Plan: Node }
    return { role, statement, steps: stepsFrom(plan), whole: plan }
  })
}

const stepsFrom = (node: Node): Step[] => [stepOf(node), ...(node.Plans ?? []).flatMap(stepsFrom)]

function stepOf(node: Node): Step {
  // Rows are told of one loop, and rounded down to whole ones.
  const { 'Actual Rows': rows = 0, 'Actual Loops': loops = 1 } = node
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return { kind: node['Node Type'], table: node['Relation Name'] ?? null, rows: (rows + removed) * loops }
}

/** The tables that were read in sequence, of those in which there is much to read. */
export const scannedTables = ({ steps }: Plan, leastRows: number): string[] => [
  ...new Set(steps.flatMap(({ kind, table, rows }) => (kind === 'Seq Scan' && rows >= leastRows ? (table ?? []) : []))),
]

/** The most rows that one step read. */
export const mostRows = (plans: Plan[]): number =>
  Math.max(0, ...plans.flatMap(({ steps }) => steps.map(({ rows }) => rows)))
