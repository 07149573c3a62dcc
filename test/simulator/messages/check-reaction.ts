import { badParameter, GraphError } from '../graph/graph-error.ts'
import { onlyKeys, type Param, requiredText } from '../graph/params.ts'

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const pictured = /\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20E3/u

/** One emoji, or an empty text, which takes the reaction away; whether the target exists shows later, in a status. */
export function checkReaction(reaction: Param) {
  onlyKeys(reaction, 'message_id', 'emoji')
  requiredText(reaction, 'message_id')
  const { emoji } = reaction.fields
  if (emoji === undefined) throw badParameter("The parameter reaction['emoji'] is required.")
  if (typeof emoji !== 'string') throw badParameter("Param reaction['emoji'] must be a string.")
  if (emoji !== '' && !isOneEmoji(emoji))
    throw new GraphError(131009, { details: "Param reaction['emoji'] must be one emoji." })
}

const isOneEmoji = (text: string) => pictured.test(text) && [...graphemes.segment(text)].length === 1
