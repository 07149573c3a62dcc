import { randomUUID } from 'node:crypto'
import type { Caller, Handler, Rpc } from '@app/shared/api/contract.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { insist } from '@app/test/each-step.ts'
import { oneOf, type Random } from '@app/test/faults/random.ts'
import type { App } from '../app.ts'
import { type Acts, acts, type Asked } from './app.ts'
import type { MoodyEndpoints } from './moody-endpoints.ts'

/** An organization of a check at random. */
export interface Tenant {
  organizationId: string
  /** What it asks for, of each instance. */
  instances: Acts[]
  /** Subscriptions that are never deleted: each gets every event that it selects. */
  lasting: string[]
  /** Those that may be deleted. */
  passing: string[]
  /** Events of each line, in their order; the last one's emission is awaited before the next. */
  lines: Map<string, { ids: string[]; emitted: Promise<unknown> }>
  /** What was emitted, by its id. */
  payloads: Map<string, string>
}

/** What was done, as far as it explains what became of deliveries. */
interface Causes {
  /** Subscriptions. */
  disabled: Set<string>
  deleted: Set<string>
  /** Deliveries that were found in the call of a process that was said to be dead. */
  abandoned: Set<string>
  /** Deliveries that were replayed one by one. */
  replayed: Set<string>
}

export interface Scene {
  apps: App[]
  /** A session of its own, which nobody ends. */
  sql: Sql
  endpoints: MoodyEndpoints
  tenants: Tenant[]
  causes: Causes
  /** Signing secrets, by subscription. */
  secrets: Map<string, string>
}

/** Two organizations, each with two subscriptions that last and one that may be deleted. */
export async function setScene(
  { apps, sql, endpoints }: Pick<Scene, 'apps' | 'sql' | 'endpoints'>,
  random: Random,
): Promise<Scene> {
  const causes = { disabled: new Set<string>(), deleted: new Set<string>(), abandoned: new Set<string>() }
  const scene: Scene = {
    apps,
    sql,
    endpoints,
    tenants: [],
    causes: { ...causes, replayed: new Set() },
    secrets: new Map(),
  }
  for (let n = 0; n < 2; n++) {
    const tenant = newTenant(apps)
    scene.tenants.push(tenant)
    for (let place = 0; place < 2; place++) tenant.lasting.push(await subscribe(scene, tenant, random))
    tenant.passing.push(await subscribe(scene, tenant, random))
  }
  return scene
}

function newTenant([first, ...others]: App[]): Tenant {
  if (!first) throw new Error('there is no instance')
  const own = acts(first)
  return {
    organizationId: own.organizationId,
    instances: [own, ...others.map((app) => acts(app, own.caller))],
    lasting: [],
    passing: [],
    lines: new Map(),
    payloads: new Map(),
  }
}

/** Makes a subscription, surely and once; answers its id. */
export async function subscribe(scene: Scene, tenant: Tenant, random: Random): Promise<string> {
  const url = oneOf(random, scene.endpoints.urls)
  const { subscribe: ask, caller } = oneOf(random, tenant.instances)
  const asking = withKey(caller)
  const created = await insist(() => ask({ url, events: ['message.received', 'customer.updated'] }, asking))
  scene.secrets.set(created.id, created.initial_secret ?? '')
  return created.id
}

/** Asks an instance until it answers, under a key, so that what is made is made once. */
export function askSurely<C extends Rpc>({ ask, caller }: Acts, handler: Handler<App, C>, input: Asked<C>) {
  const asking = withKey(caller)
  return insist(() => ask(handler, input, asking))
}

function withKey(caller: Caller): Caller {
  const key = randomUUID()
  return { ...caller, idempotency: { key, fingerprint: key } }
}
