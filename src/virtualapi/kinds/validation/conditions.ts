// Validation of metav1.Condition.
import {
  byteLength,
  fieldDuplicate,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  regexText,
} from '#apimachinery/field/index.ts'
import { type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { qualifiedName } from './values.ts'

const statuses = ['False', 'True', 'Unknown']
const longestReason = 1024
const longestMessage = 32 * 1024
const reasonText = regexText(
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
  '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?',
  'my_name',
  'MY_NAME',
  'MyName',
  'ReasonA,ReasonB',
  'ReasonA:ReasonB',
)

/** Validation errors of the conditions of a status; none if `conditions` is not a list. */
export function conditionsCauses(path: string, conditions: unknown): StatusCause[] {
  const types = new Set<string>()
  return (Array.isArray(conditions) ? (conditions as JsonValue[]) : []).flatMap((condition, index) => {
    const at = `${path}[${index}]`
    const { type: given } = isJsonObject(condition) ? condition : {}
    const type = textOf(given)
    const repeated = types.has(type) ? [fieldDuplicate(`${at}.type`, type)] : []
    types.add(type)
    return [...repeated, ...conditionCauses(at, type, condition)]
  })
}

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '')

function conditionCauses(path: string, type: string, condition: JsonValue): StatusCause[] {
  const {
    status,
    reason: why,
    message,
    observedGeneration,
    lastTransitionTime,
  } = isJsonObject(condition) ? condition : {}
  const reason = textOf(why)
  const causes = qualifiedName(`${path}.type`, type)
  if (!statuses.includes(textOf(status))) causes.push(fieldNotSupported(`${path}.status`, textOf(status), statuses))
  if (isJsonNumber(observedGeneration) && observedGeneration < 0)
    causes.push(fieldInvalid(`${path}.observedGeneration`, observedGeneration, 'must be greater than or equal to zero'))
  if (lastTransitionTime === undefined || lastTransitionTime === null)
    causes.push(fieldRequired(`${path}.lastTransitionTime`))
  if (reason === '') causes.push(fieldRequired(`${path}.reason`))
  else if (!/^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason))
    causes.push(fieldInvalid(`${path}.reason`, reason, reasonText))
  if (byteLength(reason) > longestReason) causes.push(fieldTooLong(`${path}.reason`, longestReason))
  if (byteLength(textOf(message)) > longestMessage) causes.push(fieldTooLong(`${path}.message`, longestMessage))
  return causes
}
