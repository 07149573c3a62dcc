// Runs a TypeScript file of this repository with its pinned Node, after the dependencies are installed:
//   node deploy/run.mjs deploy/start.ts [arguments]
// Plain JavaScript without dependencies, because it runs before there are any, on any Node from 20 on.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
// Not node_modules/.bin/node: that is a shell script, which would stand between us and the signals.
const pinnedNode = join(root, 'node_modules/node/bin/node')

// Whatever the settings of npm: the pinned Node is a development dependency that its own script puts in place, the only one that may.
const asNeeded = ['--prod=false', '--ignore-scripts=false']

await main(process.argv.slice(2))

async function main([script, ...args]) {
  if (Number(process.versions.node.split('.')[0]) < 20) {
    fail(`This needs Node 20 or newer, and this is ${process.version}. Install a newer one from https://nodejs.org.`)
  }
  if (!script) fail('Usage: node deploy/run.mjs FILE.ts [arguments]')
  if (!isInstalled()) await withLock(install)
  run(resolve(root, script), args)
}

/** pnpm leaves a copy of the lock file that it installed, as its last step: the same text means the same packages. */
function isInstalled() {
  const installed = join(root, 'node_modules/.pnpm/lock.yaml')
  return existsSync(pinnedNode) && existsSync(installed) && read(installed) === read(join(root, 'pnpm-lock.yaml'))
}

function install() {
  if (isInstalled()) return
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) {
    fail(
      'node_modules is a link to packages that do not fit pnpm-lock.yaml. They are not ours to change: delete the link.',
    )
  }
  const { packageManager } = JSON.parse(read(join(root, 'package.json')))
  const startedAt = Date.now()
  process.stderr.write('Installing the dependencies …\n')
  // CI: ask nothing on the terminal. From another folder, because npx prefers the programs of the folder that it is run
  // in, also a Node that is half installed.
  // Its words are shown when it fails; .npmrc silences npm for the scripts' sake.
  const options = ['--dir', root, '--loglevel=info', 'install', '--frozen-lockfile', ...asNeeded]
  const result = spawnSync('npx', ['--yes', packageManager, ...options], {
    cwd: tmpdir(),
    env: { ...process.env, CI: 'true', npm_config_loglevel: 'warn' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  })
  if (result.error) fail(`The dependencies could not be installed: npx did not start (${result.error.message}).`)
  if (result.status !== 0 || !isInstalled()) {
    process.stderr.write(`${result.stdout}${result.stderr}\n`)
    fail(`The dependencies could not be installed: \`npx ${packageManager} install\` failed, see above for why.`)
  }
  process.stderr.write(`Installed the dependencies (${((Date.now() - startedAt) / 1000).toFixed(1)} s)\n`)
}

/** One installation at a time, even when two stacks start at once. The lock of a process that is gone counts for nothing. */
async function withLock(work) {
  const lock = join(tmpdir(), `install-${createHash('sha256').update(root).digest('hex').slice(0, 16)}.lock`)
  while (!take(lock)) await sleep(200)
  const release = () => rmSync(lock, { force: true })
  // A failed installation ends the process.
  process.once('exit', release)
  work()
  release()
  process.off('exit', release)
}

function take(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch (err) {
    if (err.code !== 'EEXIST') throw err
    if (isAbandoned(lock)) rmSync(lock, { force: true })
    return false
  }
}

function isAbandoned(lock) {
  try {
    // An installation takes a minute or two; after ten, the process id surely means another process.
    if (Date.now() - statSync(lock).mtimeMs > 600_000) return true
    process.kill(Number(read(lock)) || 0, 0)
    return false
  } catch (err) {
    return err.code === 'ESRCH'
  }
}

/** The channel (`ipc`) tells the program when this process dies without a chance to say so. */
function run(script, args) {
  const child = spawn(pinnedNode, [script, ...args], {
    // Every start after the first compiles nothing again: 40 % less work for it and for the services that it starts.
    env: { NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compile'), ...process.env, ...pastTheProxy() },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  endWithNpm(child)
  child.on('error', (err) => fail(`Node did not start: ${err.message}. Delete node_modules and try again.`))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
}

/** Where Node is told to ask a proxy for everything: what listens on this machine is not for the proxy to reach. */
function pastTheProxy() {
  const { NODE_USE_ENV_PROXY, NO_PROXY, no_proxy: known = NO_PROXY } = process.env
  if (NODE_USE_ENV_PROXY !== '1' || known === '*') return {}
  const all = [known, '127.0.0.1', 'localhost'].filter(Boolean).join(',')
  return { no_proxy: all, NO_PROXY: all }
}

/**
 * npm that is told to stop ends only the shell between itself and us, and nobody tells us. So we look from time to time
 * whether it is still above us, when it was at the start.
 */
function endWithNpm(child) {
  if (!isUnderNpm()) return
  const timer = setInterval(() => {
    if (isUnderNpm()) return
    clearInterval(timer)
    child.kill('SIGTERM')
  }, 1_000)
}

function isUnderNpm() {
  if (!process.env.npm_lifecycle_script?.includes('deploy/run.mjs')) return false
  try {
    for (let pid = process.ppid; pid > 0; pid = parentOf(pid)) {
      if (/^p?npm\b|npm-cli\.js/.test(read(`/proc/${pid}/cmdline`))) return true
    }
  } catch {
    // One of them is gone, or this system has no /proc.
  }
  return false
}

function parentOf(pid) {
  return Number(/^PPid:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1])
}

function read(path) {
  return readFileSync(path, 'utf8')
}

function fail(sentence) {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}
