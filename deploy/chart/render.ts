import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '../command.ts'
import { runProgram } from '../processes/run-program.ts'
import { findPrograms } from '../servers/find-program.ts'

// Writes `rendered.yaml`, what the chart makes of `example.yaml`, after a change of it. Needs helm:
//   node deploy/run.mjs deploy/chart/render.ts

const chart = import.meta.dirname
export const renderedFile = join(chart, 'rendered.yaml')

/** What the chart makes of the example, by helm; undefined when this machine has none. */
export function render(): string | undefined {
  const [helm] = findPrograms(['helm'])
  if (helm === undefined) return undefined
  const { status, stdout, stderr } = runProgram(helm, [
    'template',
    'messaging',
    chart,
    '--values',
    join(chart, 'example.yaml'),
  ])
  if (status !== 0) throw new Error(`helm: ${stderr}`)
  return stdout
}

/** Of everything that the rendering is made from. */
export function fingerprintOfChart(): string {
  const hash = createHash('sha256')
  const files = globSync(['Chart.yaml', 'values.yaml', 'example.yaml', 'templates/*'], { cwd: chart })
  for (const file of files.toSorted()) hash.update(`${file}\n${readFileSync(join(chart, file), 'utf8')}`)
  return hash.digest('hex')
}

export const headerOf = (fingerprint: string): string =>
  `# Made by render.ts from the chart and example.yaml, ${fingerprint}.\n`

async function main() {
  const rendered = render()
  if (rendered === undefined) throw new Error('helm was not found: https://helm.sh/docs/intro/install')
  writeFileSync(renderedFile, headerOf(fingerprintOfChart()) + rendered)
}

if (import.meta.main) await runCommand(main)
