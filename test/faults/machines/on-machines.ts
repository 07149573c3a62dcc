import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * The environment of a stack whose instances stand on machines, one of each service on each: each reaches servers by
 * the ways of its machine, from the `host:port` that all are told to its own. What they agree on lies in the folder;
 * `env` is what they are told besides.
 */
export function onMachines(
  folder: string,
  ways: Record<string, string>[],
  env: Record<string, string> = {},
): Record<string, string> {
  const preloaded = pathToFileURL(join(import.meta.dirname, 'machine.ts')).href
  return {
    ...env,
    MACHINE_FOLDER: mkdtempSync(join(folder, 'machines-')),
    MACHINE_WAYS: JSON.stringify(ways),
    NODE_OPTIONS: `${env['NODE_OPTIONS'] ?? ''} --import ${preloaded}`.trim(),
  }
}

/** Where the probes of the service's instance on that machine listen; `env` is that of `onMachines`. */
export const probePortOn = (env: Record<string, string>, service: string, machine: number): number =>
  Number(readFileSync(join(env['MACHINE_FOLDER'] ?? '', `${service}-${machine}`), 'utf8'))
