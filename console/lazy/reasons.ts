// The reference of reasons, loaded when a user opens one.
import page from '../../docs/reference/reasons.md'
import { reasonTexts } from '#console/model/reasons.ts'

const texts = reasonTexts(page)

export function reasonText(reason: string): string | undefined {
  return texts.get(reason)
}
