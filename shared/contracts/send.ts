import { z } from 'zod'
import { text } from './fields.ts'
import { hasShortHost } from '../values/web-address.ts'

// The bodies of `POST /{phone_number_id}/messages`. Limits are the platform's own (its message reference, v23), checked
// here so that a fault is answered at once and names its field.

/** Ids of the platform and of files: short, visible. */
const reference = text(1, 512)

const noWebAddress = 'must be an http or https URL'

const WebAddress = z
  .string()
  .refine(hasShortHost, { abort: true, error: noWebAddress })
  .check(z.url({ protocol: /^https?$/, error: noWebAddress }))
  .max(2048, 'must have at most 2048 characters')
  .meta({ format: 'uri' })

const recipient = {
  messaging_product: z.literal('chat'),
  recipient_type: z.literal('individual').optional(),
  to: z
    .string()
    .refine((to) => to.length >= 1 && to.length <= 160, { params: { failure: 'invalid_phone_number' } })
    .meta({
      minLength: 1,
      maxLength: 160,
      description: '`+E164`, bare digits (read as international), or a bsuid.',
      example: '+15550123456',
    }),
}

/** A reply quotes the message that it answers. */
const context = z
  .object({ message_id: reference })
  .meta({ id: 'ReplyContext', description: 'The message being replied to, by its id on the platform.' })
  .optional()

const Text = z.object({ body: text(1, 4096), preview_url: z.boolean().optional() }).meta({ id: 'TextBlock' })

const source = {
  link: WebAddress.optional().meta({ description: 'Fetched by us within 5 seconds, checked, and sent from here.' }),
  id: reference.optional().meta({ description: 'Of `POST …/media` (`med_…`), or of the platform.' }),
}

interface Source {
  link?: string | undefined
  id?: string | undefined
}

function exactlyOneSource({ link, id }: Source, ctx: z.RefinementCtx) {
  if ((link === undefined) === (id === undefined))
    ctx.addIssue({ code: 'custom', path: ['link'], message: 'exactly one of link and id is required' })
}

/** Many clients always have the field: an empty one is none. */
const caption = text(0, 1024)
  .transform((value) => (value === '' ? undefined : value))
  .optional()

const Image = z
  .object({ ...source, caption })
  .superRefine(exactlyOneSource)
  .meta({ id: 'ImageBlock' })
const Video = z
  .object({ ...source, caption })
  .superRefine(exactlyOneSource)
  .meta({ id: 'VideoBlock' })
const Document = z
  .object({ ...source, caption, filename: text(1, 240).optional() })
  .superRefine(exactlyOneSource)
  .meta({ id: 'DocumentBlock' })
const Audio = z
  .object({
    ...source,
    voice: z.boolean().optional().meta({ description: 'Shown as a voice note, which is Ogg Opus.' }),
    caption: caption.meta({ description: 'Accepted, and not sent on: the platform has none.' }),
  })
  .superRefine(exactlyOneSource)
  .transform(({ link, id, voice }) => ({ link, id, voice }))
  .meta({ id: 'AudioBlock' })

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const pictured = /\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20E3/u
const isOneEmoji = (value: string) => pictured.test(value) && [...graphemes.segment(value)].length === 1

const Reaction = z
  .object({
    message_id: reference.meta({ description: 'The message reacted to, by its id on the platform.' }),
    emoji: z
      .string()
      // What follows takes 50 ms for a text of 250 KB.
      .max(64, { abort: true })
      .refine((value) => value === '' || isOneEmoji(value), 'must be one emoji, or empty to take the reaction away')
      .meta({ description: 'One emoji; empty takes the reaction away.' }),
  })
  .meta({ id: 'ReactionBlock' })

const Header = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('text'), text: text(1, 60) }).meta({ id: 'TextHeader' }),
    z.object({ type: z.literal('image'), image: Image }).meta({ id: 'ImageHeader' }),
    z.object({ type: z.literal('video'), video: Video }).meta({ id: 'VideoHeader' }),
    z.object({ type: z.literal('document'), document: Document }).meta({ id: 'DocumentHeader' }),
  ])
  .meta({ id: 'InteractiveHeader' })

const frame = {
  header: Header.optional(),
  body: z.object({ text: text(1, 1024) }).meta({ id: 'InteractiveBody' }),
  footer: z
    .object({ text: text(1, 60) })
    .meta({ id: 'InteractiveFooter' })
    .optional(),
}

const buttonId = text(1, 256)
  .refine((id) => id === id.trim(), 'must not begin or end with a space')
  .meta({ minLength: 1, maxLength: 256, description: 'Comes back in the reply. Without spaces at its ends.' })

const ReplyButton = z
  .object({
    type: z.literal('reply'),
    reply: z.object({ id: buttonId, title: text(1, 20) }),
  })
  .meta({ id: 'ReplyButton' })

function uniqueButtons(buttons: z.output<typeof ReplyButton>[], ctx: z.RefinementCtx) {
  for (const key of ['id', 'title'] as const) {
    const values = buttons.map(({ reply }) => reply[key])
    const double = values.findIndex((value, n) => values.indexOf(value) !== n)
    if (double === -1) continue
    ctx.addIssue({ code: 'custom', path: [double, 'reply', key], message: 'must be unique in the message' })
  }
}

const buttons = z
  .object({ buttons: z.array(ReplyButton).min(1).max(3).superRefine(uniqueButtons) })
  .meta({ id: 'ReplyButtonsAction' })

const callToAction = z
  .object({
    name: z.literal('cta_url'),
    parameters: z.object({ display_text: text(1, 20), url: WebAddress }),
  })
  .meta({ id: 'CtaUrlAction' })

const Interactive = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('reply_buttons'), ...frame, action: buttons }).meta({ id: 'InteractiveReplyButtons' }),
    // The platform's own word for the same.
    z.object({ type: z.literal('button'), ...frame, action: buttons }).meta({ id: 'InteractiveButton' }),
    z.object({ type: z.literal('cta_url'), ...frame, action: callToAction }).meta({ id: 'InteractiveCtaUrl' }),
  ])
  .meta({ id: 'InteractiveBlock' })

const mediaTypes = new Set(['image', 'video', 'document'])

/** A message carries one file at most, and a template's stands in its header. */
function oneFile(components: z.output<typeof TemplateComponent>[], ctx: z.RefinementCtx) {
  const files = components.flatMap(({ type, parameters = [] }, n) =>
    parameters.flatMap((parameter, m) =>
      mediaTypes.has(parameter.type) ? [{ type, path: [n, 'parameters', m] }] : [],
    ),
  )
  for (const { path } of [...files.filter(({ type }) => type !== 'header'), ...files.slice(1)])
    ctx.addIssue({ code: 'custom', path: [...path, 'type'], message: 'a template has one file, in its header' })
}

/** The platform takes these words in either case, and so do its other clients. */
const word = <const W extends readonly [string, ...string[]]>(words: W) =>
  z
    .string()
    .transform((value) => value.toLowerCase())
    .pipe(z.enum(words))
    .meta({ enum: [...words] })

const blocks = {
  text: text(1, 32_768).optional(),
  parameter_name: text(1, 128).optional().meta({ description: 'Of a template with named variables.' }),
  currency: z
    .object({
      fallback_value: text(1, 128),
      code: z.string().regex(/^[A-Z]{3}$/, 'must be three capitals such as USD'),
      // 3,000,000 rupiahs have more than 32 bits, which is what clients give a number without a format.
      amount_1000: z.int().meta({ format: 'int64', description: 'The amount, multiplied by 1000.' }),
    })
    .optional(),
  date_time: z.object({ fallback_value: text(1, 128) }).optional(),
  image: Image.optional(),
  video: Video.optional(),
  document: Document.optional(),
  location: z
    .object({
      latitude: z.union([z.number(), z.string()]),
      longitude: z.union([z.number(), z.string()]),
      name: text(1, 1000).optional(),
      address: text(1, 1000).optional(),
    })
    .optional(),
  payload: text(1, 256).optional(),
  coupon_code: text(1, 15).optional(),
  action: z.record(z.string(), z.unknown()).optional(),
}
const parameterTypes = [
  'text',
  'currency',
  'date_time',
  'image',
  'video',
  'document',
  'location',
  'payload',
  'coupon_code',
  'action',
] as const

const Parameter = z.object({ type: word(parameterTypes), ...blocks })

/** Only the block that the type names goes on to the platform. */
const namedBlockAlone = (parameter: z.output<typeof Parameter>) =>
  Object.fromEntries(
    Object.entries(parameter).filter(([key]) => ['type', 'parameter_name', parameter.type].includes(key)),
  ) as z.output<typeof Parameter>

const TemplateParameter = Parameter.superRefine((parameter, ctx) => {
  if (parameter[parameter.type] === undefined)
    ctx.addIssue({ code: 'custom', path: [parameter.type], message: `is required for the type ${parameter.type}` })
})
  .transform(namedBlockAlone)
  .meta({ id: 'TemplateParameter' })

const TemplateComponent = z
  .object({
    type: word(['header', 'body', 'footer', 'button']),
    sub_type: word([
      'quick_reply',
      'url',
      'copy_code',
      'phone_number',
      'flow',
      'catalog',
      'mpm',
      'voice_call',
    ]).optional(),
    index: z
      .union([z.int().min(0).max(9), z.string().regex(/^\d$/, 'must be 0 to 9')], 'must be 0 to 9')
      .transform(String)
      .optional(),
    parameters: z.array(TemplateParameter).max(64).optional(),
  })
  .superRefine(({ type, sub_type: subType, index }, ctx) => {
    if (type !== 'button') return
    if (subType === undefined) ctx.addIssue({ code: 'custom', path: ['sub_type'], message: 'is required for a button' })
    if (index === undefined) ctx.addIssue({ code: 'custom', path: ['index'], message: 'is required for a button' })
  })
  .meta({ id: 'TemplateComponent' })

const Template = z
  .object({
    name: z
      .string()
      .trim()
      .regex(/^[a-z0-9_]{1,512}$/, 'must be 1 to 512 of a-z, 0-9 and _'),
    language: z.union([
      z
        .string()
        .min(2)
        .max(15)
        .transform((code) => ({ code })),
      z
        .object({ code: z.string().min(2).max(15), policy: z.literal('deterministic').optional() })
        .meta({ id: 'TemplateLanguage' }),
    ]),
    components: z.array(TemplateComponent).max(16).superRefine(oneFile).optional(),
  })
  .meta({ id: 'TemplateBlock' })

export const Send = z
  .discriminatedUnion('type', [
    z.object({ ...recipient, type: z.literal('text'), context, text: Text }).meta({ id: 'SendText' }),
    z.object({ ...recipient, type: z.literal('image'), context, image: Image }).meta({ id: 'SendImage' }),
    z.object({ ...recipient, type: z.literal('document'), context, document: Document }).meta({ id: 'SendDocument' }),
    z.object({ ...recipient, type: z.literal('video'), context, video: Video }).meta({ id: 'SendVideo' }),
    z.object({ ...recipient, type: z.literal('audio'), context, audio: Audio }).meta({ id: 'SendAudio' }),
    z.object({ ...recipient, type: z.literal('template'), context, template: Template }).meta({ id: 'SendTemplate' }),
    z
      .object({ ...recipient, type: z.literal('interactive'), context, interactive: Interactive })
      .meta({ id: 'SendInteractive' }),
    z
      .object({
        ...recipient,
        type: z.literal('reaction'),
        context: z.never('must not stand beside a reaction').optional(),
        reaction: Reaction,
      })
      .meta({ id: 'SendReaction' }),
  ])
  .meta({ id: 'Send' })

export const ReadReceipt = z
  .object({
    messaging_product: z.literal('chat').optional(),
    status: z.literal('read'),
    message_id: reference.meta({ description: 'The inbound message, by its id on the platform.' }),
    typing_indicator: z
      .object({ type: z.literal('text') })
      .optional()
      .meta({ description: 'Shows a typing bubble for 25 seconds, or until the next message.' }),
  })
  .meta({ id: 'ReadReceipt' })
