-- The face of a token: requests of programs, or pages of the console. A token of one face is not valid on another.
ALTER TABLE tokens ADD COLUMN face TEXT NOT NULL DEFAULT 'program' CHECK (face IN ('program','console'));
-- The last time at which a code of `ironctl` confirmed the person of a session of the console, in milliseconds since the epoch.
ALTER TABLE tokens ADD COLUMN confirmed_at INTEGER;
