/** How a message looks, of either side. Everything that a message says is put in as text, never as markup. */

const files = new Set(['image', 'video', 'audio', 'document', 'sticker'])

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties)
  node.append(...children.filter((child) => child !== undefined))
  return node
}

const paragraph = (text, className = '') => (text ? element('p', { className, textContent: text }) : undefined)

/** The parts of a message's block: `tap` is called with the inbound message that a button stands for, `quoted` says a message in a line. */
export function partsOf(message, template, tap, quoted) {
  const { type = 'text', context } = message
  const block = message[type] ?? {}
  const quote = context?.message_id ?? context?.id
  return [
    quote && element('p', { className: 'quote', textContent: `↪ ${quoted(quote)}` }),
    ...blockOf(type, block, template, tap, quoted),
  ]
}

function blockOf(type, block, template, tap, quoted) {
  if (files.has(type)) return fileOf(type, block)
  switch (type) {
    case 'text':
      return [paragraph(block.body)]
    case 'reaction':
      return [
        paragraph(block.emoji || 'took the reaction away'),
        element('small', { textContent: `on ${quoted(block.message_id)}` }),
      ]
    case 'button':
      return [paragraph(block.text, 'head'), element('small', { textContent: 'button of a template' })]
    case 'interactive':
      return interactiveOf(block, tap)
    case 'template':
      return templateOf(block, template ?? [], tap)
    case 'location':
      return [paragraph(`${block.name ?? 'Location'}: ${block.latitude}, ${block.longitude}`)]
    default:
      return [paragraph(type, 'head'), element('small', { textContent: wordsIn(block).join(' · ') })]
  }
}

const wordsIn = (value) =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(wordsIn) : [String(value)]

function fileOf(type, block) {
  const source = block.link ?? `/watch/files/${block.id}`
  const caption = paragraph(block.caption)
  if (type === 'image' || type === 'sticker')
    return [element('img', { src: source, alt: block.caption ?? type }), caption]
  if (type === 'video') return [element('video', { src: source, controls: true, preload: 'metadata' }), caption]
  if (type === 'audio') return [element('audio', { src: source, controls: true, preload: 'none' })]
  const name = block.filename ?? block.link ?? block.id
  return [element('p', {}, link(source, `📄 ${name}`)), caption]
}

/** Only web addresses are links: a message may say anything. */
function link(href, textContent) {
  const { protocol } = new URL(href, location.href)
  if (protocol !== 'http:' && protocol !== 'https:') return element('span', { textContent })
  return element('a', { href, textContent, target: '_blank', rel: 'noreferrer noopener' })
}

function headerOf(header) {
  if (!header) return []
  return header.type === 'text' ? [paragraph(header.text, 'head')] : fileOf(header.type, header[header.type] ?? {})
}

const footerOf = (text) => text && element('small', { textContent: text })
const taps = (buttons) => (buttons.length > 0 ? element('div', { className: 'taps' }, ...buttons) : undefined)
const tappable = (textContent, onclick) => element('button', { type: 'button', textContent, onclick })

function interactiveOf(block, tap) {
  const reply = block.button_reply ?? block.list_reply
  if (reply) return [paragraph(reply.title, 'head'), element('small', { textContent: `${block.type} ${reply.id}` })]
  const { parameters, buttons = [] } = block.action ?? {}
  const shown = parameters
    ? [link(parameters.url, parameters.display_text)]
    : buttons.map(({ reply: button }) =>
        tappable(button.title, () =>
          tap({ type: 'interactive', interactive: { type: 'button_reply', button_reply: button } }),
        ),
      )
  return [...headerOf(block.header), paragraph(block.body?.text), footerOf(block.footer?.text), taps(shown)]
}

function templateOf(block, components, tap) {
  const sent = (type, index) =>
    (block.components ?? []).find(
      (component) =>
        component.type.toLowerCase() === type && (index === undefined || Number(component.index) === index),
    )?.parameters ?? []
  const part = (type) => components.find((component) => component.type.toUpperCase() === type)
  const header = part('HEADER')
  const [file] = sent('header')
  const heads =
    header && header.format && header.format.toUpperCase() !== 'TEXT'
      ? headerOf(file)
      : [paragraph(filledIn(header?.text, sent('header')), 'head')]
  const body = filledIn(part('BODY')?.text, sent('body')) || sent('body').map(textOf).join(' ')
  const buttons = (part('BUTTONS')?.buttons ?? []).map((button, index) =>
    templateButton(button, sent('button', index), tap),
  )
  const name = element('small', { textContent: `template ${block.name} · ${block.language.code}` })
  return [...heads, paragraph(body), footerOf(part('FOOTER')?.text), taps(buttons), name]
}

function templateButton(button, [parameter], tap) {
  const { type, text = type, url = '' } = button
  if (type.toUpperCase() === 'URL') return link(url.replace(/\{\{[^{}]*\}\}/, parameter?.text ?? ''), text)
  if (type.toUpperCase() !== 'QUICK_REPLY')
    return element('span', {
      textContent: `${text}: ${parameter?.coupon_code ?? parameter?.text ?? button.phone_number ?? ''}`,
    })
  return tappable(text, () => tap({ type: 'button', button: { text, payload: parameter?.payload ?? text } }))
}

const textOf = (parameter) =>
  parameter?.text ?? parameter?.currency?.fallback_value ?? parameter?.date_time?.fallback_value ?? ''

const filledIn = (text = '', parameters = []) =>
  text.replaceAll(/\{\{\s*([^{}]*?)\s*\}\}/g, (whole, name) => {
    const named = parameters.find((parameter) => parameter.parameter_name === name)
    return textOf(named ?? parameters[Number(name) - 1]) || whole
  })

/** One line of a message, for the list of chats. */
export function summaryOf(message) {
  const { type = 'text' } = message
  const block = message[type] ?? {}
  const text = block.body?.text ?? block.body ?? block.caption ?? block.text ?? block.emoji ?? block.button_reply?.title
  return typeof text === 'string' ? text : `${type} ${block.name ?? ''}`
}
