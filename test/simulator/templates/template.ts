import { z } from 'zod'

export const TemplateStatus = z.enum([
  'PENDING',
  'APPROVED',
  'REJECTED',
  'PAUSED',
  'DISABLED',
  'IN_APPEAL',
  'PENDING_DELETION',
  'DELETED',
  'LIMIT_EXCEEDED',
  'FLAGGED',
  'REINSTATED',
  'LOCKED',
  'ARCHIVED',
])
export type TemplateStatus = z.output<typeof TemplateStatus>

export const Category = z.enum(['MARKETING', 'UTILITY', 'AUTHENTICATION'])
export type Category = z.output<typeof Category>

export const Quality = z.enum(['GREEN', 'YELLOW', 'RED', 'UNKNOWN'])
export const ParameterFormat = z.enum(['POSITIONAL', 'NAMED'])
export const Components = z.array(z.record(z.string(), z.unknown()))
export type Components = z.output<typeof Components>

/** A template of a business account, in one language; its components as they were written. */
export const Template = z.strictObject({
  id: z.string(),
  /** Its place among all that were ever made, for the order of lists. */
  sequence: z.int(),
  businessAccountId: z.string(),
  name: z.string(),
  language: z.string(),
  category: Category,
  parameterFormat: ParameterFormat,
  components: Components,
  status: TemplateStatus,
  rejectedReason: z.string(),
  quality: Quality,
  sendTtlSeconds: z.int().optional(),
  /** When it was edited while approved. */
  editedAt: z.array(z.number()),
})
export type Template = z.output<typeof Template>

/** A name and language that were deleted, and until when they cannot be made again. */
export const Deletion = z.strictObject({
  businessAccountId: z.string(),
  name: z.string(),
  language: z.string(),
  until: z.number(),
})
export type Deletion = z.output<typeof Deletion>
