import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import { time, timeInput } from './fields.ts'

export const WebhookReplay = z
  .object({
    id: idOf('rpl').nullable().meta({ description: 'Null in the answer to a dry run.' }),
    object: z.literal('webhook_replay'),
    subscription_id: idOf('wbs'),
    status: z
      .enum(['queued', 'running', 'completed', 'cancelled'])
      .meta({ description: '`completed`: all are enqueued. Their outcomes go on being counted.' }),
    matched: z.int().min(0).meta({ description: 'The deliveries that it replays.' }),
    enqueued: z.int().min(0),
    succeeded: z.int().min(0),
    failed: z.int().min(0).meta({ description: 'Those that were given up.' }),
    truncated: z
      .boolean()
      .meta({ description: 'There are more than the 100,000 of one replay: go on at `next_since`.' }),
    next_since: time.nullable(),
    created_at: time,
    finished_at: time.nullable(),
  })
  .meta({ id: 'WebhookReplay' })

const exampleReplay = {
  id: 'rpl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'webhook_replay',
  subscription_id: 'wbs_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  status: 'running',
  matched: 1200,
  enqueued: 400,
  succeeded: 390,
  failed: 0,
  truncated: false,
  next_since: null,
  created_at: '2026-03-01T12:00:00.000Z',
  finished_at: null,
}

const replayParams = z.object({ id: idOf('rpl') })

export const createWebhookReplay = rpc({
  subject: 'rpc.webhooks.create-webhook-replay',
  summary: 'Replay the deliveries of a subscription',
  description:
    'A job that replays dead (or failed) deliveries that were created from `since` on and before `until`, oldest first, in a small share of the capacity, so that new events are not delayed. It survives restarts. With `dry_run` it only counts: 200, and nothing is stored.',
  http: {
    method: 'POST',
    path: '/webhook_deliveries/replays',
    status: 202,
    otherStatus: 200,
    tag: 'Webhook deliveries',
    feature: 'webhooks',
  },
  body: z.object({
    subscription_id: idOf('wbs'),
    since: timeInput,
    until: timeInput.optional(),
    status: z.enum(['dead', 'failed']).optional().meta({ description: '`dead` unless told otherwise.' }),
    event_types: z.array(z.string().min(1).max(100)).min(1).max(100).optional(),
    dry_run: z.boolean().optional(),
  }),
  answer: WebhookReplay,
  errors: ['resource_not_found', 'webhook_subscription_disabled', 'replay_in_progress'],
  example: {
    body: { subscription_id: exampleReplay.subscription_id, since: '2026-03-01T00:00:00Z' },
    answer: { ...exampleReplay, status: 'queued', enqueued: 0, succeeded: 0 },
  },
})

export const listWebhookReplays = rpc({
  subject: 'rpc.webhooks.list-webhook-replays',
  summary: 'List the replays',
  http: { method: 'GET', path: '/webhook_deliveries/replays', tag: 'Webhook deliveries' },
  query: z.object({ ...pageQuery, subscription_id: idOf('wbs').optional() }),
  answer: WebhookReplay,
  list: true,
  example: { answer: exampleReplay },
})

export const getWebhookReplay = rpc({
  subject: 'rpc.webhooks.get-webhook-replay',
  summary: 'Get a replay and its progress',
  http: { method: 'GET', path: '/webhook_deliveries/replays/{id}', tag: 'Webhook deliveries' },
  params: replayParams,
  answer: WebhookReplay,
  errors: ['resource_not_found'],
  example: { answer: exampleReplay },
})

export const cancelWebhookReplay = rpc({
  subject: 'rpc.webhooks.cancel-webhook-replay',
  summary: 'Cancel a replay',
  description: 'No more deliveries are enqueued; those that were go on. A replay that is over stays as it is.',
  http: { method: 'POST', path: '/webhook_deliveries/replays/{id}/cancel', tag: 'Webhook deliveries' },
  params: replayParams,
  answer: WebhookReplay,
  errors: ['resource_not_found'],
  example: { answer: { ...exampleReplay, status: 'cancelled', finished_at: '2026-03-01T12:00:05.000Z' } },
})
