import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '../command.ts'
import { runProgram } from '../processes/run-program.ts'
import { findPrograms } from '../servers/find-program.ts'

// Writes what the chart makes of its examples, after a change of it. Needs helm:
//   node deploy/run.mjs deploy/chart/render.ts

const chart = import.meta.dirname

export interface Example {
  values: string
  rendered: string
  /** Kinds of manifests that it has none of. */
  without: string[]
}

/** An installation as most are, one with every optional part, and one with none. */
export const examples: Example[] = [
  { values: 'example.yaml', rendered: 'rendered.yaml', without: ['PersistentVolumeClaim', 'PodMonitor'] },
  { values: 'everything.yaml', rendered: 'rendered-everything.yaml', without: ['PersistentVolumeClaim'] },
  { values: 'bare.yaml', rendered: 'rendered-bare.yaml', without: ['Ingress', 'NetworkPolicy', 'PodMonitor'] },
]

export const readRendered = ({ rendered }: Example): string => readFileSync(join(chart, rendered), 'utf8')

/** What the chart makes of the example, with single values set otherwise, by helm; undefined when this machine has none. */
export function render({ values }: Pick<Example, 'values'>, set: string[] = []): string | undefined {
  const [helm] = findPrograms(['helm'])
  if (helm === undefined) return undefined
  const sets = set.flatMap((one) => ['--set', one])
  const { status, stdout, stderr } = runProgram(helm, [
    'template',
    'messaging',
    chart,
    '--values',
    join(chart, values),
    ...sets,
  ])
  if (status !== 0) throw new Error(`helm: ${stderr}`)
  return stdout
}

/** Of everything that the rendering is made from. */
function fingerprintOf({ values }: Example): string {
  const hash = createHash('sha256')
  const files = globSync(['Chart.yaml', 'values.yaml', values, 'templates/*'], { cwd: chart })
  for (const file of files.toSorted()) hash.update(`${file}\n${readFileSync(join(chart, file), 'utf8')}`)
  return hash.digest('hex')
}

export const headerOf = (example: Example): string =>
  `# Made by render.ts from the chart and ${example.values}, ${fingerprintOf(example)}.\n`

async function main() {
  for (const example of examples) {
    const text = render(example)
    if (text === undefined) throw new Error('helm was not found: https://helm.sh/docs/intro/install')
    writeFileSync(join(chart, example.rendered), headerOf(example) + text)
  }
}

if (import.meta.main) await runCommand(main)
