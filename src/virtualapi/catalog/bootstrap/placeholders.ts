/** Texts in bootstrap objects that stand for what differs between logical clusters. */
export const placeholders = {
  creationTime: 'CREATION-TIME',
  /** PEM. */
  frontProxyCa: 'FRONT-PROXY-CA',
} as const
