import { chmodSync, cpSync, linkSync, copyFileSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { runProgram } from '../processes/run-program.ts'
import { repository } from '../stack/options.ts'
import { contextIn } from './context.ts'

/** What the last stage is, as a folder that stands for `/`. */
export interface Image {
  root: string
  workdir: string
  user: { uid: number; gid: number }
  environment: Record<string, string>
  entrypoint: string[]
  command: string[]
}

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

/** One instruction a line: `\` at an end goes on. */
const instructionsOf = (dockerfile: string) =>
  dockerfile
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, word = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? []
      return { word, rest }
    })

/**
 * Carries out `Dockerfile` in a folder, without an engine: each stage is a folder that has this machine's programs, and of
 * the base image only its Node, which is the repository's. Throws at an instruction that it does not know.
 */
export function buildImage(folder: string): Image {
  const context = contextIn(repository, read('.dockerignore'))
  const stages = new Map<string, Image>()
  let image = scratchIn(folder)
  for (const { word, rest } of instructionsOf(read('deploy/image/Dockerfile'))) {
    if (word === 'FROM') {
      const name = / AS (\S+)$/.exec(rest)?.[1] ?? 'last'
      image = newStage(join(folder, name))
      stages.set(name, image)
    } else if (word === 'WORKDIR') {
      image.workdir = rest
      mkdirSync(image.root + rest, { recursive: true })
    } else if (word === 'COPY') copy(rest, { image, context, stages })
    else if (word === 'RUN') runIn(image, rest)
    else if (word === 'USER') {
      const [uid = NaN, gid = NaN] = rest.split(':').map(Number)
      image.user = { uid, gid }
    } else if (word === 'ENV') Object.assign(image.environment, variablesOf(rest))
    else if (word === 'ENTRYPOINT') image.entrypoint = JSON.parse(rest) as string[]
    else if (word === 'CMD') image.command = JSON.parse(rest) as string[]
    else if (word !== 'EXPOSE') throw new Error(`Dockerfile: ${word} is not known here`)
  }
  return image
}

const scratchIn = (root: string): Image => ({
  root,
  workdir: '/',
  user: { uid: 0, gid: 0 },
  environment: {},
  entrypoint: [],
  command: [],
})

function newStage(root: string): Image {
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true })
  place(process.execPath, join(root, 'usr/local/bin/node'))
  return scratchIn(root)
}

/** Large, so rather by another name than a second time. */
function place(from: string, to: string) {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

interface Place {
  image: Image
  context: string[]
  stages: Map<string, Image>
}

function copy(rest: string, { image, context, stages }: Place) {
  const words = rest.split(' ')
  const option = (name: string) => words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3)
  const paths = words.filter((word) => !word.startsWith('--'))
  const target = paths.at(-1) ?? ''
  const to = join(image.root, image.workdir, target)
  const [stage, mode] = [option('from'), option('chmod')]
  if (stage !== undefined) {
    const from = `${stages.get(stage)?.root}${paths[0]}`
    return cpSync(from, to, { recursive: true, verbatimSymlinks: true })
  }
  for (const path of paths.slice(0, -1)) {
    const files = context.filter((file) => file === path || file.startsWith(`${path}/`))
    if (files.length === 0) throw new Error(`COPY ${path}: the context has no such file`)
    for (const file of files) {
      const own = file === path ? (target.endsWith('/') ? basename(file) : '') : file.slice(path.length + 1)
      mkdirSync(dirname(join(to, own)), { recursive: true })
      copyFileSync(join(repository, file), join(to, own))
      chmodSync(join(to, own), mode === undefined ? statSync(join(repository, file)).mode : parseInt(mode, 8))
    }
  }
}

/** Where pnpm has the files of the packages that are installed here. */
const storeOfPackages = () => (JSON.parse(read('node_modules/.modules.yaml')) as { storeDir: string }).storeDir

/** By a shell of this machine. What the registry has is taken from what is here already, where it is. */
function runIn({ root, workdir }: Image, command: string) {
  const isRoot = process.getuid?.() === 0
  const here = command
    .replaceAll(/(?<= )\/media\b/g, join(root, 'media'))
    .replace(/--owner \d+ --group \d+ /, (owner) => (isRoot ? owner : ''))
  const { status, stdout, stderr } = runProgram('sh', ['-c', here], {
    cwd: join(root, workdir),
    env: {
      HOME: process.env['HOME'],
      PATH: `${join(root, 'usr/local/bin')}:${process.env['PATH']}`,
      CI: 'true',
      npm_config_prefix: join(root, 'usr/local'),
      npm_config_prefer_offline: 'true',
      // Left to itself pnpm makes a new, empty one where the folder is on another disk.
      npm_config_store_dir: storeOfPackages(),
      // A second name of a file in the machine's own store would share its mode.
      npm_config_package_import_method: 'copy',
    },
  })
  if (status !== 0) throw new Error(`RUN ${command}: ${stdout}${stderr}`)
}

/** Every file and folder below, links left out. */
export function entriesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isSymbolicLink()) return []
    return entry.isDirectory() ? [path, ...entriesBelow(path)] : [path]
  })
}

const variablesOf = (pairs: string) =>
  Object.fromEntries([...pairs.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]))
