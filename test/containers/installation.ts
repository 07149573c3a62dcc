import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseEnv } from 'node:util'
import { z } from 'zod'
import { readPage, root } from '../docs/pages.ts'
import { openShell, type Shell } from '../docs/shell.ts'
import { docker, placeOf } from './docker.ts'

const upstream = { UPSTREAM_APP_ID: '1000', UPSTREAM_APP_SECRET: 'app-secret' }
const slowestCommandMs = 800_000

/** All that an engine calls private; the addresses of a container beside the stack are among them. */
const privateNetworks = '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16'

/** What an operator types into the file of secrets, by an editor that asks nobody. */
const editor = [
  'sed -i',
  '-e s#^PUBLIC_URL=.*#PUBLIC_URL=https://chat.example#',
  ...Object.entries(upstream).map(([name, value]) => `-e s#^${name}=.*#${name}=${value}#`),
  '-e $aUPSTREAM_BASE_URL=http://world:8090',
  `-e $aEGRESS_ALLOW_CIDRS=${privateNetworks}`,
].join(' ')

/** The snippet of a page that begins with these words. */
export function snippetOf(page: string, begin: string): string {
  const found = readPage(page).snippets.find(({ code }) => code.startsWith(begin))
  if (!found) throw new Error(`${page} has no snippet that begins with: ${begin}`)
  return found.code
}

const Program = z.object({
  Service: z.string(),
  Name: z.string(),
  State: z.string(),
  Health: z.string(),
  ExitCode: z.number(),
})

/** The compose file, run by the commands of the pages in a copy of the repository, under a name of its own. */
export class Installation {
  readonly project = `messaging-${process.pid}`
  readonly folder = mkdtempSync(join(tmpdir(), 'containers-'))
  readonly #shell: Shell

  constructor() {
    const others = new Set(['node_modules', '.git', '.local'])
    cpSync(root, this.folder, {
      recursive: true,
      filter: (path) => !others.has(basename(path)) && !path.endsWith('deploy/secrets.env'),
    })
    const env = { COMPOSE_PROJECT_NAME: this.project, PORT: '127.0.0.1:', EDITOR: editor, BUILDKIT_PROGRESS: 'plain' }
    this.#shell = openShell(this.folder, env, slowestCommandMs)
  }

  /** What the commands print; throws when one of them fails. */
  async run(code: string): Promise<string> {
    const { output, status } = await this.#shell.run(code)
    if (status !== 0) throw new Error(`${code}\n${output}`)
    return output
  }

  compose(...args: string[]): Promise<string> {
    const options = ['--env-file', 'deploy/secrets.env', '--file', 'deploy/compose.yaml']
    return this.run(['docker compose', ...options, ...args].join(' '))
  }

  /** The answer of an operator's command. */
  async admin(...args: string[]) {
    const output = await this.compose('run --rm admin', ...args, '2> /dev/null')
    return JSON.parse(output)
  }

  async programs() {
    const lines = (await this.compose('ps --all --format json 2> /dev/null')).trim().split('\n')
    return lines.map((line) => Program.parse(JSON.parse(line)))
  }

  async gatewayUrl(): Promise<string> {
    return `http://${await placeOf(`${this.project}-gateway-1`, 8080)}`
  }

  /** The platform is `world` to the services, the subscriber `subscriber.example`: a name without a dot is refused. */
  async startWorld(image: string) {
    const { UPSTREAM_VERIFY_TOKEN = '' } = parseEnv(readFileSync(join(this.folder, 'deploy/secrets.env'), 'utf8'))
    const env = { ...upstream, UPSTREAM_VERIFY_TOKEN, CALLBACK_URL: 'http://gateway:8080/upstream/callbacks' }
    const name = `${this.project}-world`
    await docker(
      'run', '--detach', '--name', name, '--network', `${this.project}_outside`, '--network-alias', 'world',
      '--network-alias', 'subscriber.example',
      '--volume', `${root}:${root}:ro`, '--user', '0', '--publish', '127.0.0.1::8090', '--publish', '127.0.0.1::9001',
      ...Object.entries(env).flatMap(([variable, value]) => ['--env', `${variable}=${value}`]),
      image, join(import.meta.dirname, 'world.ts'),
    ) // prettier-ignore
    return { simulator: `http://${await placeOf(name, 8090)}`, deliveries: `http://${await placeOf(name, 9001)}` }
  }

  async remove() {
    await docker('rm', '--force', '--volumes', `${this.project}-world`).catch(() => {})
    await this.compose('--profile admin down --volumes --timeout 5').catch(() => {})
    this.#shell.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
