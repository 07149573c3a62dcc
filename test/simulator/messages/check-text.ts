import { onlyKeys, optionalBoolean, type Param, requiredText } from '../graph/params.ts'

export function checkText(text: Param) {
  onlyKeys(text, 'body', 'preview_url')
  requiredText(text, 'body', 4096)
  optionalBoolean(text, 'preview_url')
}
