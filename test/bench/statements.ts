/** What a statement has cost so far. */
export interface Statement {
  /** Role and text: what it is told by. */
  name: string
  calls: number
  /** In which the server was at it: plans, work, and waits for locks and for the disk. */
  totalMs: number
  /** Of these, the making of its plan. */
  planMs: number
  rows: number
}

/** Shown of the costliest. */
const shown = 25

const nothing = { calls: 0, totalMs: 0, planMs: 0, rows: 0 }

/** `statement`, with `times` as much of `other`. */
const plus = (statement: Statement, times: 1 | -1, other: Omit<Statement, 'name'>): Statement => ({
  name: statement.name,
  calls: statement.calls + times * other.calls,
  totalMs: statement.totalMs + times * other.totalMs,
  planMs: statement.planMs + times * other.planMs,
  rows: statement.rows + times * other.rows,
})

/** What was spent between two readings, costliest first. */
export function spentBetween(before: Statement[], after: Statement[]): Statement[] {
  const known = new Map(before.map((statement) => [statement.name, statement]))
  const spent = after.map((statement) => plus(statement, -1, known.get(statement.name) ?? nothing))
  return byCost(spent.filter(({ calls }) => calls > 0))
}

/** Several times together. */
export function addStatements(times: Statement[][]): Statement[] {
  const sums = new Map<string, Statement>()
  for (const statement of times.flat())
    sums.set(statement.name, plus(statement, 1, sums.get(statement.name) ?? nothing))
  return byCost([...sums.values()])
}

const byCost = (statements: Statement[]) => statements.toSorted((a, b) => b.totalMs - a.totalMs)

/** A line for each statement: what it adds to one of what was done `count` times. None when none were watched. */
export function costsOfOne(title: string, statements: Statement[], count: number): string[] {
  if (statements.length === 0) return []
  const micros = (ms: number) => (ms * 1000) / count
  const all = micros(statements.reduce((sum, { totalMs }) => sum + totalMs, 0))
  const lines = statements.slice(0, shown).map(({ name, calls, totalMs, planMs, rows }) => {
    const numbers = [
      `${micros(totalMs).toFixed(1)} µs`.padStart(12),
      `${((100 * micros(totalMs)) / all).toFixed(0)} %`.padStart(5),
      `${micros(planMs).toFixed(1)} planned`.padStart(16),
      `${(calls / count).toFixed(2)} calls`.padStart(12),
      `${(rows / calls).toFixed(1)} rows each`.padStart(16),
    ]
    return `${numbers.join('')}  ${name}`
  })
  return [`SQL of ${title}: ${all.toFixed(0)} µs in statements`, ...lines]
}

/** The same of bursts, each with what its statements cost. */
export const costsOfBursts = (title: string, bursts: Array<{ requests: number; statements?: Statement[] }>): string[] =>
  costsOfOne(
    title,
    addStatements(bursts.map(({ statements = [] }) => statements)),
    bursts.reduce((sum, { requests }) => sum + requests, 0),
  )
