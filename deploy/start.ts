import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runCommand, sentenceOf } from './command.ts'
import { migrate } from './migrate.ts'
import { claimFolder, releaseFolder } from './processes/claim.ts'
import { keepPort, portFor, refusalOf } from './processes/ports.ts'
import { supervise, type Watcher } from './processes/supervise.ts'
import { authorizationOf } from './nats/authorization.ts'
import { publicKeyOf } from './nats/keys.ts'
import { provisionAt } from './provision.ts'
import { startServers } from './servers/start-servers.ts'
import { keepDemo } from './stack/demo.ts'
import { createEnding, type Ending } from './stack/ending.ts'
import { stopLeftovers } from './stack/leftovers.ts'
import { helpFor, type Options, readOptions } from './stack/options.ts'
import { createProgress, type Progress, secondsSince } from './progress.ts'
import { keepSecrets, natsSeedOf, passwordsOf } from './stack/secrets.ts'
import { originOf, simulatorProgram } from './stack/service-programs.ts'
import { removeStackFile, rewriteStackFile, type RunningStack, writeStackFile } from './stack/stack-file.ts'
import { startServices, untilAllReady } from './stack/start-services.ts'
import { summaryOf } from './stack/summary.ts'

// The local stack: finds or starts the servers, then the services, and keeps all of them running until it is stopped.

async function main() {
  const args = process.argv.slice(2)
  const help = helpFor(args)
  if (help !== null) return console.log(help)
  const options = readOptions(args, process.env)
  const progress = createProgress(options.quiet)
  claimFolder(options.dataDir)
  const ending = createEnding()
  endOnSignals(options, ending, progress)
  try {
    await startStack(options, ending, progress)
  } catch (err) {
    // A signal in the middle of the start makes its steps fail, perhaps before we hear of it; then `endOnSignals` ends
    // the process.
    await sleep(20)
    if (ending.isStopping()) return
    console.error(sentenceOf(err))
    await end(options, ending)
    process.exit(1)
  }
}

async function startStack(options: Options, ending: Ending, progress: Progress) {
  const startedAt = performance.now()
  const { dataDir } = options
  removeStackFile(dataDir)
  await stopLeftovers(dataDir)
  await refuseBusyPort(options.port)
  keepPort(options.port)
  // What customers sent is nobody else's.
  mkdirSync(join(dataDir, 'media'), { recursive: true })
  chmodSync(join(dataDir, 'media'), 0o700)

  let ready: RunningStack | undefined
  const watcher: Watcher = {
    onDeath: progress.say,
    onRestart: () => ready && !ending.isStopping() && rewriteStackFile(dataDir, ready),
  }
  const serviceWatcher: Watcher = { ...watcher, isEnding: ending.isStopping }
  const publicUrl = originOf('HOST', options.port)
  const simulatorUrl = `http://127.0.0.1:${await portFor(dataDir, 'simulator')}`
  const secrets = keepSecrets(dataDir)
  const outline = { options, secrets, publicUrl, simulatorUrl }
  const natsAuthorization = authorizationOf((user) => publicKeyOf(secrets[`${user}NatsSeed`]))

  const [servers, simulator] = await Promise.all([
    ending.begin(() => startServers({ dataDir, log: progress.say, watcher, natsAuthorization })),
    ending.begin(() => supervise(dataDir, simulatorProgram(outline), serviceWatcher)),
  ])
  const bus = { natsUrl: servers.natsUrl, natsSeed: natsSeedOf(secrets, 'deploy') }
  await progress.step('Database schemas and event stream', () =>
    Promise.all([
      migrate(servers.postgresUrl, { passwords: passwordsOf(secrets) }),
      provisionAt(bus, options.natsReplicas),
    ]),
  )
  const services = await startServices({ ...outline, servers }, ending, serviceWatcher)
  await progress.step('Services and simulator', () => untilAllReady(services, simulator, simulatorUrl))
  const demo = await progress.step('Demo organization', () => keepDemo({ dataDir, bus, simulatorUrl }))

  ready = { publicUrl, simulatorUrl, servers, bus, demo, services }
  writeStackFile(dataDir, ready)
  progress.say(`Ready in ${secondsSince(startedAt)} s.\n${summaryOf(publicUrl, simulatorUrl, dataDir, demo)}`)
}

async function refuseBusyPort(port: number) {
  const refusal = await refusalOf(port)
  if (refusal === undefined) return
  const another = `choose another port: PORT=${port < 1024 || port === 65_535 ? 8080 : port + 1} npm start`
  throw new Error(
    refusal === 'EADDRINUSE'
      ? `Port ${port} is in use by another program. Stop that program, or ${another}`
      : `Port ${port} is not for this user to listen on (${refusal}). Give it the right to, or ${another}`,
  )
}

/** Ctrl-C, SIGTERM, a closed terminal, or the death of the process that started us: all mean an orderly end. */
function endOnSignals(options: Options, ending: Ending, progress: Progress) {
  const stop = async () => {
    if (ending.isStopping()) return
    const startedAt = performance.now()
    progress.say('\nStopping …')
    await end(options, ending)
    progress.say(`Stopped (${secondsSince(startedAt)} s)`)
    process.exit(0)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop())
  process.on('disconnect', () => void stop())
  // A closed terminal takes our output, too.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
}

async function end({ dataDir }: Options, ending: Ending) {
  removeStackFile(dataDir)
  await ending.stop()
  releaseFolder(dataDir)
}

await runCommand(main)
