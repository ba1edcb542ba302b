// Validation of metav1.Condition.
import { regexText } from '#apimachinery/field/index.ts'
import { isJsonNumber, isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { notBelowZero, qualifiedName } from './basic-rules.ts'
import { all, each, matches, maxBytes, oneOf, required, type Rule } from './vocabulary.ts'

const status = oneOf(['False', 'True', 'Unknown'])
const reason = all<string>(
  required(
    matches(
      /^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/,
      regexText(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?',
        'my_name',
        'MY_NAME',
        'MyName',
        'ReasonA,ReasonB',
        'ReasonA:ReasonB',
      ),
    ),
  ),
  maxBytes(1024),
)
const message = maxBytes(32 * 1024)

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '')

const condition: Rule<JsonValue> = (value, report) => {
  const given = isJsonObject(value) ? value : {}
  const { observedGeneration, lastTransitionTime } = given
  const type = textOf(given['type'])
  if (report.isRepeated(condition, type)) report.duplicate('type', type)
  report.at('type', qualifiedName, type)
  report.at('status', status, textOf(given['status']))
  if (isJsonNumber(observedGeneration)) report.at('observedGeneration', notBelowZero, observedGeneration)
  if (lastTransitionTime === undefined || lastTransitionTime === null) report.required('lastTransitionTime')
  report.at('reason', reason, textOf(given['reason']))
  report.at('message', message, textOf(given['message']))
}
const conditionList = each(condition)

/** The conditions of a status; a value that is not a list is valid. */
export const conditions: Rule<unknown> = (list, report) => {
  if (Array.isArray(list)) report.check(conditionList, list as JsonValue[])
}
