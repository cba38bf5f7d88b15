/**
 * For the document: which fields exclude each other, and which go together. The validation has messages of its own for
 * each field; as a schema it would only say that nothing fits.
 */
export const NOT_GIVEN = { type: 'null' } as const;

const TRIGGERS = {
  cron: {
    title: 'By cron expression',
    given: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
  },
  everySeconds: { title: 'By interval', given: { type: 'integer' } },
  at: { title: 'Once', given: { type: 'string' } },
  after: { title: 'After runs of another schedule', given: { type: 'object' } },
} as const;
type Trigger = keyof typeof TRIGGERS;
const ALL = Object.keys(TRIGGERS) as Trigger[];

/** Exactly one of these is given. */
export function exactlyOneOf(triggers: readonly Trigger[] = ALL): { oneOf: object[] } {
  return {
    oneOf: triggers.map((trigger) => {
      const { title, given } = TRIGGERS[trigger];
      const others = withoutOthers(triggers, trigger);
      return { title, required: [trigger], properties: { ...others, [trigger]: given } };
    }),
  };
}

/** As above, or none: of a schedule whose job only reports. */
export function exactlyOneOrHeartbeat(): { oneOf: object[] } {
  const none = Object.fromEntries(ALL.map((trigger) => [trigger, NOT_GIVEN]));
  const heartbeat = {
    title: 'Heartbeat',
    required: ['observe', 'successWithinSeconds'],
    properties: {
      ...none,
      ...NO_DAYS,
      observe: { type: 'object' },
      successWithinSeconds: { type: 'integer' },
    },
  };
  return { oneOf: [...exactlyOneOf().oneOf, heartbeat] };
}

/** At most one of these is given: the others are absent, or null. */
export function atMostOneOf(triggers: readonly Trigger[] = ALL): { anyOf: object[] } {
  return {
    anyOf: triggers.map((trigger) => ({
      title: TRIGGERS[trigger].title,
      properties: withoutOthers(triggers, trigger),
    })),
  };
}

/** Where a field has one value, others say nothing. */
export function where(
  field: string,
  cases: readonly { is: unknown; properties?: Record<string, object> }[],
): { oneOf: object[] } {
  return {
    oneOf: cases.map(({ is, properties = {} }) => ({
      title: `${field}: ${String(is)}`,
      required: [field],
      properties: { [field]: { const: is }, ...properties },
    })),
  };
}

const NO_DAYS = { every: NOT_GIVEN, pick: NOT_GIVEN, onExcluded: { enum: ['skip', null] } };

function withoutOthers(triggers: readonly Trigger[], trigger: Trigger): Record<string, object> {
  const others = triggers.filter((other) => other !== trigger).map((other) => [other, NOT_GIVEN] as const);
  // Only an expression selects days; a schedule without fire times of its own has none to exclude.
  const days = trigger === 'cron' ? {} : NO_DAYS;
  return { ...Object.fromEntries(others), ...days, ...(trigger === 'after' ? { exclude: NOT_GIVEN } : {}) };
}
