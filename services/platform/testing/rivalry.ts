import { Problem } from '@app/shared/api/problem.ts'
import { isLockTimeout } from '@app/shared/database/database.ts'
import { oneOf, randomOf } from '@app/test/faults/random.ts'
import { seed } from '@app/test/fuzz/seed.ts'
import type { AccountState } from '../accounts/account-states.ts'
import { startPolling } from '../health/poll-accounts.ts'
import { startResuming } from '../onboarding/resume-onboardings.ts'
import { startPeers, type TestApp } from './app.ts'
import { chooseAct } from './rival-acts.ts'
import { historyOf, type RivalHistory } from './rival-history.ts'
import { endWalks, whatIsHeld } from './rival-rest.ts'
import { gatherRivals, type Rivals } from './rivals.ts'

/** Who acts at a time: fewer than the service has connections to Postgres. */
const actors = 8

/** Lets rivals do so many things at the same time, chosen by seed and round; answers what came of it when all is at rest. */
export async function runRivalry(test: TestApp, round: number, amount: number): Promise<RivalHistory> {
  const { app } = test
  const peers = await startPeers(app)
  const gathered = await gatherRivals(test)
  const polling = gathered.instances.map(startPolling)
  const resuming = gathered.instances.map(startResuming)
  const rivals = { ...gathered, wakePolling: () => polling.forEach((loop) => loop.wake()) }
  const names = Array.from({ length: actors }, (_, n) => `actor ${n} of round ${round}`)
  const errors = await Promise.all(names.map((name) => act(rivals, name, Math.ceil(amount / actors))))
  for (const loop of [...polling, ...resuming]) await loop.stop()
  const stuck = [...(await whatIsHeld(app, rivals.organizationIds)), ...(await endWalks(app, rivals.organizationIds))]
  const history = await historyOf(app, rivals.organizationIds)
  await peers.stop()
  const isTheirs = ({ organization_id: id }: AccountState) => rivals.organizationIds.includes(id)
  // Those of an earlier round may be asked for still.
  const passedOn = {
    messaging: peers.told.messaging.filter(isTheirs),
    directory: peers.told.directory.filter(isTheirs),
  }
  return { ...history, passedOn, errors: errors.flat(), stuck }
}

/** One thing after the other; answers what went wrong and is none of what the service may refuse. */
async function act(rivals: Rivals, name: string, times: number): Promise<string[]> {
  const random = randomOf(seed, name)
  const errors: string[] = []
  for (let n = 0; n < times; n++) {
    const chosen = chooseAct(random)
    await chosen(oneOf(random, rivals.instances), rivals, random).catch((err: unknown) => {
      if (!isRefusal(err)) errors.push(`${chosen.name}: ${wordsOf(err)}`)
    })
  }
  return errors
}

/** A lock comes too late on a busy machine: then clients are told to ask again. */
const isRefusal = (err: unknown) => isLockTimeout(err) || (err instanceof Problem && err.status < 500)

const wordsOf = (err: unknown) =>
  err instanceof Error ? `${err.stack} ${err.cause instanceof Error ? err.cause.stack : ''}` : String(err)
