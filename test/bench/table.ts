import { type Figure, type FigureKind, type FigureName, figureKinds } from './figures.ts'
import { median } from './median.ts'

export interface Row {
  title: string
  value: number
  gate: number | undefined
  aim: number | undefined
  /** Absent where there is no gate. */
  verdict: 'aim' | 'gate' | 'missed' | undefined
  unit: FigureKind['unit']
  from: string
}

/** The figures as rows, in the order of `figureKinds`: the median of the rounds, with its gate and aim. */
export function rowsOf(figures: Figure[]): Row[] {
  const order = Object.keys(figureKinds) as FigureName[]
  return figures.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name)).map(rowOf)
}

function rowOf({ name, rounds, from }: Figure): Row {
  const kind: FigureKind = figureKinds[name]
  const value = median(rounds)
  return {
    title: kind.title,
    value,
    gate: kind.gate,
    aim: kind.aim,
    verdict: verdictOf(kind, value),
    unit: kind.unit,
    from,
  }
}

function verdictOf({ better, gate, aim }: FigureKind, value: number) {
  if (gate === undefined || aim === undefined) return undefined
  const reaches = (bound: number) => (better === 'more' ? value >= bound : value <= bound)
  if (reaches(aim)) return 'aim'
  return reaches(gate) ? 'gate' : 'missed'
}

const heads = ['', 'measured', 'gate', 'aim', '', 'from']

/** A table for the terminal. */
export function tableOf(rows: Row[]): string {
  const lines = [heads, ...rows.map(cellsOf)]
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => pad(cell, widths[column] ?? 0, column))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Words to the left, numbers to the right. */
const pad = (cell: string, width: number, column: number) =>
  column >= 1 && column <= 3 ? cell.padStart(width) : cell.padEnd(width)

const cellsOf = ({ title, value, gate, aim, verdict, unit, from }: Row) => [
  title,
  show(value, unit),
  gate === undefined ? '' : show(gate, unit),
  aim === undefined ? '' : show(aim, unit),
  verdict === 'missed' ? 'MISSED' : (verdict ?? ''),
  from,
]

function show(value: number, unit: FigureKind['unit']) {
  const text = value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2)
  return unit === 'times' ? `${text} ×` : `${text} ${unit}`
}
