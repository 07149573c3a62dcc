import { createHash } from 'node:crypto'
import type { ApiKey } from '@app/shared/contracts/platform.ts'
import type { z } from 'zod'

export interface KeyRow {
  id: string
  organizationId: string
  label: string
  last4: string
  expiresAt: Date | null
  revokedAt: Date | null
  createdAt: Date
}

export const keyColumns = ['id', 'organization_id', 'label', 'last4', 'expires_at', 'revoked_at', 'created_at']

export const toApiKey = (row: KeyRow): z.output<typeof ApiKey> => ({
  id: row.id,
  object: 'api_key',
  organization_id: row.organizationId,
  label: row.label,
  last4: row.last4,
  expires_at: row.expiresAt?.toISOString() ?? null,
  revoked_at: row.revokedAt?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
})

/** What is kept of a key's text: it has 144 random bits, so a plain hash cannot be guessed back. */
export const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex')
