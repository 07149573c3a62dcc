import type { Handler } from '../api/contract.ts'
import type { countSecretsOf, resealSecretsOf, SealedCount } from '../contracts/secrets.ts'
import type { Sql } from '../database/database.ts'
import type { KeyRing } from '../service/environment.ts'
import { mostCounted } from '../metrics/database-readings.ts'
import { type Gauges, readings } from '../metrics/readings.ts'
import { Problem } from '../api/problem.ts'
import { resealBatch } from './reseal-secrets.ts'
import { countByKey, type SealedColumn, stateOf } from './sealed-columns.ts'
import type { DataService } from '../service/service.ts'

type Count = ReturnType<typeof countSecretsOf>
type Reseal = ReturnType<typeof resealSecretsOf>
type App = Pick<DataService, 'sql' | 'log' | 'probes'> & { sealKeys: KeyRing }

const gauges: Gauges = {
  svc_sealed_secrets: {
    help: `Stored secrets, by table, key and whether that is the current one, an old one or missing; counted up to ${mostCounted}.`,
    labelNames: ['table', 'key', 'state'],
  },
}

/** Tells by which keys a service's secrets are sealed: as a gauge, in the log when a key is missing, and to the operator. */
export function watchSecrets(
  { sql, log, probes, sealKeys }: App,
  columns: SealedColumn[],
): { countSecrets: Handler<App, Count>; resealSecrets: Handler<App, Reseal> } {
  const count = () => countSealed(sql, sealKeys, columns)
  readings(probes.metrics, 'secrets', gauges, async () =>
    (await count()).map(({ count: value, ...labels }) => ({ gauge: 'svc_sealed_secrets', labels, value })),
  )
  const tell = async () => {
    for (const { state, ...found } of await count()) {
      if (state === 'missing') log.error(found, 'stored secrets need a key that is not in SEAL_KEYS')
    }
  }
  void tell().catch((err: unknown) => log.warn({ err }, 'sealed secrets cannot be counted'))
  return {
    countSecrets: async () => ({ counts: await count() }),
    async resealSecrets(_, { body: { current, after } }) {
      if (current !== sealKeys.current) {
        throw new Problem('invalid_field_value', {
          param: 'current',
          message: `An instance seals with the key "${sealKeys.current}", not with "${current}".`,
        })
      }
      return resealBatch({ sql, log, sealKeys }, columns, after)
    },
  }
}

async function countSealed(sql: Sql, keys: KeyRing, columns: SealedColumn[]): Promise<SealedCount[]> {
  const counted = await Promise.all(columns.map((column) => countByKey(sql, column)))
  return counted.flatMap((rows, n) =>
    rows.map(({ key, count }) => ({ table: columns[n]?.table ?? '', key, state: stateOf(keys, key), count })),
  )
}
