import { z } from 'zod'

const Advisory = z.object({
  module_name: z.string(),
  severity: z.string(),
  title: z.string(),
  url: z.string().default(''),
  findings: z.array(z.object({ version: z.string(), paths: z.array(z.string()) })),
})
/** What `pnpm audit --json` says: advisories, or why there are none to be had. */
const Report = z.union([
  z.object({ advisories: z.record(z.string(), Advisory) }),
  z.object({ error: z.object({ message: z.string() }) }),
])

export type Verdict =
  /** The registry gives no advisories, or is not there. */
  { kind: 'skipped'; why: string } | { kind: 'clean' } | { kind: 'found'; lines: string[] }

const grave = new Set(['high', 'critical'])

/** Reads a report. What tests alone depend on runs at nobody's: it is left out. */
export function verdictOf(output: string): Verdict {
  const { data } = Report.safeParse(jsonOf(output))
  if (!data) return { kind: 'skipped', why: output.trim().split('\n').at(-1) || 'no answer' }
  if ('error' in data) return { kind: 'skipped', why: data.error.message }
  const lines = Object.values(data.advisories)
    .filter(({ severity }) => grave.has(severity))
    .flatMap(({ module_name: name, severity, title, url, findings }) =>
      findings.flatMap(({ version, paths }) => {
        const [path, ...more] = paths.filter(isShipped)
        const others = more.length > 0 ? ` and ${more.length} more` : ''
        return path === undefined ? [] : [`${severity}: ${name} ${version}: ${title} (${path}${others}) ${url}`.trim()]
      }),
    )
  return lines.length > 0 ? { kind: 'found', lines } : { kind: 'clean' }
}

/** A path begins with the folder of a workspace, `/` written as `__`. */
const isShipped = (path: string) => /^(shared|deploy|services__\w+)>/.test(path)

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
