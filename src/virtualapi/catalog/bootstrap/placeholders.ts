/** Texts in bootstrap objects that are replaced by values of the logical cluster. */
export const placeholders = {
  creationTime: 'CREATION-TIME',
  /** PEM. */
  frontProxyCa: 'FRONT-PROXY-CA',
} as const
